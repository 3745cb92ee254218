#include "remote_host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "calque/base/error.h"

namespace calque {

using Clock = std::chrono::steady_clock;

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(20);
constexpr auto answer_patience = std::chrono::seconds(10);
// More than the remote side takes to end its processes.
constexpr auto end_patience = std::chrono::seconds(20);

Words split_words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// In the POSIX shell. Reads names of signals; at the end of its input it ends the processes, at first
// politely. A process that is replaced by exec keeps its environment: /proc shows it.
constexpr const char* watch_script = R"sh(mark='@MARK@'
marked() {
  grep -lsF "$mark" /proc/[0-9]*/environ | while IFS= read -r f; do p=${f#/proc/}; echo "${p%/environ}"; done
}
send() { for p in $(marked); do kill -s "$1" "$p" 2>/dev/null; done; }
trap '' INT HUP PIPE
while read -r name; do send "$name"; done
i=0
while [ $i -lt 20 ] && [ -n "$(marked)" ]; do
  [ $i -eq 0 ] && send TERM
  i=$((i + 1)); sleep 0.5
done
send KILL)sh";

bool wait_until(pid_t pid, Clock::time_point until) {
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

void kill_and_wait(pid_t pid) {
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace

Words remote_command(const std::string& remote_shell, const std::string& host, const std::string& line) {
  Words all = split_words(remote_shell);
  if (all.empty()) throw UserError("--remote-shell is empty", "for example --remote-shell ssh");
  const bool is_ssh = std::filesystem::path(all.front()).filename() == "ssh";
  if (is_ssh) {  // an option that is given twice counts as it was first
    for (const char* option :
         {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=4"})
      all.insert(all.end(), {"-o", option});
  }
  all.push_back(host);
  // ssh gives its arguments to a shell over there; others (`ip netns exec`) run them as they are.
  if (!is_ssh) all.insert(all.end(), {"sh", "-c"});
  all.push_back(line);
  return all;
}

pid_t start_process(const Words& command, const Words& environment, bool first, int input) {
  const pid_t pid = fork();
  if (pid < 0) throw SystemError("fork", errno);
  if (pid > 0) return pid;
  setpgid(0, 0);  // an interrupt of the terminal comes to the launcher alone
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  // Outside of the terminal's foreground, reading from it would stop the process.
  if (input >= 0 || !first || isatty(STDIN_FILENO) == 1) dup2(input >= 0 ? input : nothing, STDIN_FILENO);
  if (!first) dup2(nothing, STDOUT_FILENO);
  for (const std::string& one : environment) putenv(const_cast<char*>(one.c_str()));
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "error: %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

std::vector<bool> hosts_answer(const std::string& remote_shell, const Words& hosts) {
  std::vector<pid_t> probes;
  for (const std::string& host : hosts)
    probes.push_back(start_process(remote_command(remote_shell, host, "true"), {}, false));
  std::vector<bool> answers(hosts.size(), false);
  std::vector<bool> ended(hosts.size(), false);
  const auto until = Clock::now() + answer_patience;
  while (Clock::now() < until && std::find(ended.begin(), ended.end(), false) != ended.end()) {
    for (size_t i = 0; i < hosts.size(); ++i) {
      int status = 0;
      if (ended[i] || waitpid(probes[i], &status, WNOHANG) != probes[i]) continue;
      ended[i] = true;
      answers[i] = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    std::this_thread::sleep_for(poll_interval);
  }
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!ended[i]) kill_and_wait(probes[i]);
  }
  return answers;
}

RemoteWatch::RemoteWatch(const std::string& remote_shell, const std::string& host, const std::string& mark) {
  std::string script = watch_script;
  script.replace(script.find("@MARK@"), 6, mark);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw SystemError("pipe", errno);
  pid_ = start_process(remote_command(remote_shell, host, script), {}, false, ends[0]);
  close(ends[0]);
  pipe_ = ends[1];
}

RemoteWatch::~RemoteWatch() {
  let_go();
  if (!wait_until(pid_, Clock::now() + end_patience)) kill_and_wait(pid_);
}

void RemoteWatch::let_go() {
  if (pipe_ >= 0) close(std::exchange(pipe_, -1));
}

void RemoteWatch::signal(const std::string& name) const {
  const std::string line = name + "\n";
  // A connection that is gone has ended its processes.
  if (write(pipe_, line.data(), line.size()) < 0) return;
}

}  // namespace calque
