#include "calque/distributed/launcher.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../../src/distributed/remote_host.h"
#include "calque/base/error.h"

namespace calque {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Called as `SHELL HOST sh -c COMMAND`: one host runs commands, another refuses to.
class TemporaryScript {
 public:
  TemporaryScript() {
    std::ofstream(path_) << "#!/bin/sh\n[ $1 = good ] || exit 255\nshift\nexec \"$@\"\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~TemporaryScript() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = fmt::format("{}/shell-{}", testing::TempDir(), getpid());
};

std::string list_refusal(const std::string& list) {
  try {
    parse_hosts(list);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Launcher, ReadsListsOfHosts) {
  const auto hosts = parse_hosts("a:2,b,user@c:16");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].name, "a");
  EXPECT_EQ(hosts[0].processes, 2);
  EXPECT_EQ(hosts[1].name, "b");
  EXPECT_EQ(hosts[1].processes, 1);
  EXPECT_EQ(hosts[2].name, "user@c");
  EXPECT_EQ(hosts[2].processes, 16);
}

TEST(Launcher, RefusesListsThatMeanNothing) {
  EXPECT_EQ(list_refusal(""), "--hosts: the list is empty");
  for (const char* entry : {"a:0", "a:x", "a:-1", ":2", "a:1x", "-oProxyCommand=x"})
    EXPECT_EQ(list_refusal(entry), fmt::format("--hosts: \"{}\": expected HOST or HOST:PROCESSES", entry));
  EXPECT_THAT(list_refusal("a,,b"), HasSubstr("\"\": expected"));
}

TEST(Launcher, DescribesTheWorldToEachProcess) {
  LaunchOptions options;
  options.hosts = parse_hosts("a:2,b");
  options.port = 1234;
  options.job = "j";
  options.token = "t";
  const auto environments = launch_environments(options, 3);
  ASSERT_EQ(environments.size(), 3u);
  EXPECT_THAT(environments[0],
              ElementsAre("RANK=0", "WORLD_SIZE=3", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=a",
                          "MASTER_PORT=1234", "TORCHELASTIC_RESTART_COUNT=3", "TORCHELASTIC_RUN_ID=j",
                          "CALQUE_JOB_TOKEN=t"));
  EXPECT_THAT(environments[1], Contains("LOCAL_RANK=1"));
  EXPECT_THAT(environments[2],
              testing::AllOf(Contains("RANK=2"), Contains("LOCAL_RANK=0"), Contains("LOCAL_WORLD_SIZE=1")));
  options.address = "10.0.0.1";
  EXPECT_THAT(launch_environments(options, 0)[2], Contains("MASTER_ADDR=10.0.0.1"));
  options.hosts = {Host{"", 2}};
  options.address.clear();
  EXPECT_THAT(launch_environments(options, 0)[1], Contains("MASTER_ADDR=127.0.0.1"));
}

TEST(Launcher, ForgetsTheAddressOfAHostThatIsGone) {
  LaunchOptions options;
  options.hosts = parse_hosts("a,b:2,c");
  options.address = "10.0.0.1";
  keep_hosts(options, {true, false, true});
  EXPECT_EQ(options.address, "10.0.0.1");
  ASSERT_EQ(options.hosts.size(), 2u);
  EXPECT_EQ(options.hosts[1].name, "c");
  keep_hosts(options, {false, true});
  EXPECT_EQ(options.address, "");
  EXPECT_EQ(options.hosts[0].name, "c");
}

TEST(RemoteHost, SshAsksNobodyForAPassword) {
  EXPECT_THAT(remote_command("ssh -p 22022", "a", "true"),
              ElementsAre("ssh", "-p", "22022", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                          "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "a", "true"));
  EXPECT_THAT(remote_command("ip netns exec", "a", "true"),
              ElementsAre("ip", "netns", "exec", "a", "sh", "-c", "true"));
}

TEST(RemoteHost, HostsThatDoNotAnswerAreKnownInTime) {
  const TemporaryScript shell;  // called as `SHELL HOST sh -c COMMAND`
  const auto started = std::chrono::steady_clock::now();
  EXPECT_THAT(hosts_answer(shell.path(), {"good", "refuses", "good"}), ElementsAre(true, false, true));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
}

// A process that has lost its launcher would hold the port and the run.
TEST(RemoteHost, AWatchPassesSignalsOnAndEndsWhatItWatches) {
  const TemporaryScript shell;
  const std::string mark = fmt::format("CALQUE_LAUNCH=test-{};", getpid());
  const auto start = [&](const char* script) {
    return start_process({"env", mark, "sh", "-c", script}, {}, false);
  };
  const auto ended = [](pid_t pid) {
    for (int i = 0; i < 500; ++i) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) == pid)
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    kill(pid, SIGKILL);
    return 999;
  };
  const pid_t polite = start("trap 'exit 7' INT; while :; do sleep 0.1; done");
  const pid_t other = start_process({"sleep", "60"}, {}, false);
  const pid_t deaf = start("trap '' INT TERM; while :; do sleep 0.1; done");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  {
    const RemoteWatch watch(shell.path(), "good", mark);
    watch.signal("INT");
    EXPECT_EQ(ended(polite), 7);
    watch.signal("KILL");
    EXPECT_EQ(ended(deaf), -SIGKILL);
  }
  const pid_t left = start("while :; do sleep 0.1; done");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  { const RemoteWatch watch(shell.path(), "good", mark); }
  EXPECT_EQ(ended(left), -SIGTERM);
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0);  // not one of them
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace calque
