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
#include "calque/base/text.h"

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
// politely. A process that is replaced by exec keeps its environment: /proc shows it. An interrupt may come
// before the processes do.
constexpr const char* watch_script =
    R"sh(mark='@MARK@'; )sh"
    R"sh(marked() { grep -lsF "$mark" /proc/[0-9]*/environ | )sh"
    R"sh(while IFS= read -r f; do p=${f#/proc/}; echo "${p%/environ}"; done; }; )sh"
    R"sh(send() { for p in $(marked); do kill -s "$1" "$p" 2>/dev/null; done; }; )sh"
    R"sh(interrupt() { sent=' '; while :; do for p in $(marked); do case "$sent" in *" $p "*) ;; )sh"
    R"sh(*) kill -s INT "$p" 2>/dev/null; sent="$sent$p " ;; esac; done; sleep 0.2; done; }; )sh"
    R"sh(trap '' INT HUP PIPE; later=; )sh"
    R"sh(while read -r name; do )sh"
    R"sh(if [ "$name" = INT ]; then interrupt & later=$!; else send "$name"; fi; done; )sh"
    R"sh([ -z "$later" ] || kill "$later"; )sh"
    R"sh(i=0; while [ $i -lt 20 ] && [ -n "$(marked)" ]; do )sh"
    R"sh([ $i -eq 0 ] && send TERM; i=$((i + 1)); sleep 0.5; done; )sh"
    R"sh(send KILL)sh";

bool wait_until(pid_t pid, Clock::time_point until, int* status = nullptr) {
  while (waitpid(pid, status, WNOHANG) == 0) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

bool is_ssh(const RemoteShell& shell) {
  return std::filesystem::path(shell.words.front()).filename() == "ssh";
}

void kill_and_wait(pid_t pid) {
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace

RemoteShell find_remote_shell(const std::string& program, const std::string& host) {
  RemoteShell shell{split_words(program)};
  if (shell.words.empty()) throw UserError("--remote-shell is empty", "for example --remote-shell ssh");
  if (is_ssh(shell)) return shell;
  Words test = shell.words;
  test.insert(test.end(), {host, "sh", "-c", "exit 7"});  // joined, the 7 is another word: it ends with 0
  const pid_t pid = start_process(test, {}, false);
  int status = 0;
  const bool ended = wait_until(pid, Clock::now() + answer_patience, &status);
  if (!ended) kill_and_wait(pid);
  shell.joins_words = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return shell;
}

Words remote_command(const RemoteShell& shell, const std::string& host, const std::string& line) {
  Words all = shell.words;
  if (is_ssh(shell)) {  // an option that is given twice counts as it was first
    for (const char* option :
         {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=4"})
      all.insert(all.end(), {"-o", option});
  }
  all.insert(all.end(), {host, "sh", "-c", shell.joins_words ? shell_quoted(line) : line});
  return all;
}

namespace {

// After fork(). Signals are blocked: one that comes early must end this process, not be noted by the
// launcher's handler.
[[noreturn]] void become(const Words& command, const Words& environment, const sigset_t& mask) {
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before {};
    sigaction(one, nullptr, &before);
    // nohup has SIGHUP ignored; SIGPIPE is ignored by the launcher alone.
    if (one == SIGPIPE || before.sa_handler != SIG_IGN) ::signal(one, SIG_DFL);
  }
  for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "error: %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

}  // namespace

pid_t start_process(const Words& command, const Words& environment, bool first, int input) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid != 0) {
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) throw SystemError("fork", error);
    return pid;
  }
  setpgid(0, 0);  // an interrupt of the terminal comes to the launcher alone
  if (input < 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  // Outside of the terminal's foreground, reading from it would stop the process.
  if (input >= 0 || !first || isatty(STDIN_FILENO) == 1) dup2(input >= 0 ? input : nothing, STDIN_FILENO);
  if (!first) dup2(nothing, STDOUT_FILENO);
  become(command, environment, before);
}

std::vector<bool> hosts_answer(const RemoteShell& shell, const Words& hosts) {
  std::vector<pid_t> probes;
  for (const std::string& host : hosts)
    probes.push_back(start_process(remote_command(shell, host, "true"), {}, false));
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

RemoteWatch::RemoteWatch(const RemoteShell& shell, const std::string& host, const std::string& mark)
    : host_(host) {
  std::string script = watch_script;
  script.replace(script.find("@MARK@"), 6, mark);
  command_ = remote_command(shell, host, script);
  connect();
}

void RemoteWatch::connect() {
  let_go();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw SystemError("pipe", errno);
  pid_ = start_process(command_, {}, false, ends[0]);
  close(ends[0]);
  pipe_ = ends[1];
}

RemoteWatch::~RemoteWatch() {
  let_go();
  if (!is_lost() && !wait_until(pid_, Clock::now() + end_patience)) kill_and_wait(pid_);
}

bool RemoteWatch::is_lost() {
  if (pid_ >= 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
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
