#include "calque/distributed/launcher.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../../src/distributed/remote_host.h"
#include "calque/base/error.h"
#include "calque/base/interrupt.h"

namespace calque {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// A program in the place of ssh, called as `SHELL HOST sh -c COMMAND`. The host "good" runs commands, others
// refuse to. `joins`: it gives the words to a shell, as ssh does. `first`: lines of its own, before all that.
class TemporaryScript {
 public:
  explicit TemporaryScript(bool joins = false, const std::string& first = "") {
    std::ofstream(path_) << "#!/bin/sh\n"
                         << first << "\n[ $1 = good ] || exit 255\nshift\n"
                         << (joins ? "exec sh -c \"$*\"\n" : "exec \"$@\"\n");
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~TemporaryScript() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  RemoteShell shell() const { return find_remote_shell(path_, "good"); }

 private:
  std::string path_ = fmt::format("{}/shell-{}", testing::TempDir(), getpid());
};

// Waits at most ten seconds. Negative: the signal that ended it.
int exit_code_of(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return 999;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

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
  EXPECT_THAT(remote_command(find_remote_shell("ssh -p 22022", "a"), "a", "echo it's"),
              ElementsAre("ssh", "-p", "22022", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                          "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "a", "sh", "-c",
                          "'echo it'\\''s'"));
}

TEST(RemoteHost, CommandsArriveAsTheyAreWhateverTheProgramDoesWithWords) {
  const std::string file = fmt::format("{}/words-{}", testing::TempDir(), getpid());
  for (const bool joins : {false, true}) {
    const TemporaryScript script(joins);
    const RemoteShell shell = script.shell();
    EXPECT_EQ(shell.joins_words, joins);
    const std::string line = fmt::format("printf '%s\\n' 'a  b' \"it's $((1 + 1))\" > {}; exit 7", file);
    EXPECT_EQ(exit_code_of(start_process(remote_command(shell, "good", line), {}, false)), 7);
    EXPECT_THAT(lines_of(file), ElementsAre("a  b", "it's 2"));
  }
  std::filesystem::remove(file);
}

TEST(RemoteHost, HostsThatDoNotAnswerAreKnownInTime) {
  const TemporaryScript script;
  const auto started = std::chrono::steady_clock::now();
  EXPECT_THAT(hosts_answer(script.shell(), {"good", "refuses", "good"}), ElementsAre(true, false, true));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
}

// A process that has lost its launcher would hold the port and the run.
TEST(RemoteHost, AWatchPassesSignalsOnAndEndsWhatItWatches) {
  const TemporaryScript script;
  const RemoteShell shell = script.shell();
  const std::string mark = fmt::format("CALQUE_LAUNCH=test-{};", getpid());
  const auto start = [&](const char* commands) {
    return start_process({"env", mark, "sh", "-c", commands}, {}, false);
  };
  const char* counts =
      "n=0; trap 'n=$((n + 1))' INT; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; exit $n";
  const pid_t polite = start(counts);
  const pid_t other = start_process({"sleep", "60"}, {}, false);
  const pid_t deaf = start("trap '' INT TERM; while :; do sleep 0.1; done");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  {
    const RemoteWatch watch(shell, "good", mark);
    watch.signal("INT");
    EXPECT_EQ(exit_code_of(polite), 1);  // once
    // It starts after the interrupt.
    EXPECT_EQ(exit_code_of(start("trap 'exit 7' INT; while :; do sleep 0.1; done")), 7);
    watch.signal("KILL");
    EXPECT_EQ(exit_code_of(deaf), -SIGKILL);
  }
  const pid_t left = start("while :; do sleep 0.1; done");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  { const RemoteWatch watch(shell, "good", mark); }
  EXPECT_EQ(exit_code_of(left), -SIGTERM);
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0);  // not one of them
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

// Between fork() and exec() it has the launcher's handlers.
TEST(RemoteHost, AnInterruptEndsAProcessThatHasJustStarted) {
  const Interrupt interrupt;
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = start_process({"sleep", "60"}, {}, false);
    kill(pid, SIGINT);
    ASSERT_EQ(exit_code_of(pid), -SIGINT);
  }
  EXPECT_FALSE(interrupt.requested());
}

// Runs commands on host "good" through the script, `processes` times each; returns the exit code.
int launch_through(const TemporaryScript& script, const std::string& commands, int processes = 1,
                   int max_restarts = 0) {
  LaunchOptions options;
  options.hosts = {Host{"good", processes}};
  options.remote_shell = script.path();
  options.max_restarts = max_restarts;
  return launch(options, {"sh", "-c", commands});
}

// The shell of another machine says it; ssh has the same exit code for all signals.
TEST(Launcher, TheSignalThatEndsARemoteProcessIsKnown) {
  EXPECT_EQ(launch_through(TemporaryScript(true), "kill -9 $$"), 128 + SIGKILL);
}

TEST(Launcher, AWatchThatIsLostEndsTheAttempt) {
  // The first command that reads its input for signals is refused.
  const std::string once = fmt::format("{}/once-{}", testing::TempDir(), getpid());
  const TemporaryScript script(
      false, fmt::format("case \"$*\" in *environ*) [ -e {0} ] || {{ touch {0}; exit 255; }} ;; esac", once));
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(launch_through(script, "sleep 60"), 255);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(40));
  std::filesystem::remove(once);
}

TEST(Launcher, AnInterruptWhileHostsAreAskedEndsIt) {
  const std::string attempts = fmt::format("{}/attempts-{}", testing::TempDir(), getpid());
  const TemporaryScript script(false, "[ \"$4\" != true ] || sleep 2");  // the answer to `true` takes long
  std::thread person([] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    kill(getpid(), SIGINT);
  });
  const Interrupt interrupt;  // whenever the signal comes
  EXPECT_EQ(launch_through(script, fmt::format("echo x >> {}; exit 3", attempts), 1, 1), 3);
  person.join();
  EXPECT_EQ(lines_of(attempts).size(), 1U);
  std::filesystem::remove(attempts);
}

// More connections at once than sshd lets in.
TEST(Launcher, ManyProcessesOfAHostStartOneAfterAnother) {
  const std::string times = fmt::format("{}/times-{}", testing::TempDir(), getpid());
  EXPECT_EQ(launch_through(TemporaryScript(), fmt::format("date +%s%3N >> {}", times), 9), 0);
  auto lines = lines_of(times);
  ASSERT_EQ(lines.size(), 9U);
  std::sort(lines.begin(), lines.end());
  EXPECT_GT(std::stoll(lines[7]) - std::stoll(lines[6]), 500);
  std::filesystem::remove(times);
}

}  // namespace
}  // namespace calque
