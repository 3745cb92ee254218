#include "calque/distributed/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <sstream>
#include <thread>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "network.h"

namespace calque {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto poll_interval = std::chrono::milliseconds(50);
// The others notice by themselves that one has failed; those that do not in this time are killed.
constexpr auto grace = std::chrono::seconds(15);
constexpr int exit_user_error = 2, exit_interrupted = 130;

struct Process {
  pid_t pid = -1;
  int rank = 0;
  std::string host;
  bool running = true;
  int code = 0;  // 128 + signal, as shells say it
};

int processes_of(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.processes; });
}

bool is_local(const std::vector<Host>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.name.empty(); });
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> remote_command(const LaunchOptions& options, const std::string& host,
                                        const std::vector<std::string>& environment,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> all = words(options.remote_shell);
  all.push_back(host);
  std::string line = fmt::format("cd {} && exec env", shell_quoted(std::filesystem::current_path().string()));
  for (const std::string& one : environment) line += " " + shell_quoted(one);
  for (const std::string& one : command) line += " " + shell_quoted(one);
  // ssh gives its arguments to a shell over there; others (`ip netns exec`) run them as they are.
  if (std::filesystem::path(all.front()).filename() != "ssh") all.insert(all.end(), {"sh", "-c"});
  all.push_back(line);
  return all;
}

// Only rank 0 reads from stdin and writes to stdout. A process group of its own: an interrupt of the terminal
// comes to the launcher alone, which passes it on once.
[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                         bool first) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!first) {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
  }
  for (const std::string& one : environment) putenv(const_cast<char*>(one.c_str()));
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "error: %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

std::vector<Process> start(const LaunchOptions& options, const std::vector<std::string>& command,
                           int restarts) {
  const auto environments = launch_environments(options, restarts);
  std::vector<Process> processes;
  for (const Host& host : options.hosts) {
    for (int i = 0; i < host.processes; ++i) {
      const auto rank = processes.size();
      const auto& environment = environments[rank];
      const auto all = host.name.empty() ? command : remote_command(options, host.name, environment, command);
      Process process;
      process.rank = static_cast<int>(rank);
      process.host = host.name;
      process.pid = fork();
      if (process.pid < 0) throw SystemError("fork", errno);
      if (process.pid == 0)
        become(all, host.name.empty() ? environment : std::vector<std::string>(), rank == 0);
      processes.push_back(process);
    }
  }
  return processes;
}

void send_signal(const std::vector<Process>& processes, int signal) {
  for (const Process& process : processes) {
    if (process.running) kill(process.pid, signal);
  }
}

// Notes which have ended.
void poll(std::vector<Process>& processes) {
  for (Process& process : processes) {
    int status = 0;
    if (!process.running || waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    process.running = false;
    process.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

// Waits for all to end; returns the first that failed, if any did.
const Process* watch(std::vector<Process>& processes, const Interrupt& interrupt) {
  const Process* failed = nullptr;
  Clock::time_point failed_at;
  bool passed_on = false;
  for (;;) {
    poll(processes);
    if (failed == nullptr) {
      const auto found = std::find_if(processes.begin(), processes.end(),
                                      [](const Process& one) { return !one.running && one.code != 0; });
      if (found != processes.end()) failed = &*found;
      failed_at = Clock::now();
    }
    if (std::none_of(processes.begin(), processes.end(), [](const Process& one) { return one.running; }))
      return failed;
    if (failed != nullptr && Clock::now() - failed_at > grace) send_signal(processes, SIGKILL);
    if (interrupt.requested() && !std::exchange(passed_on, true)) send_signal(processes, SIGINT);
    std::this_thread::sleep_for(poll_interval);
  }
}

// Leaves out the hosts on which nothing can be started any more.
void drop_lost_hosts(LaunchOptions& options) {
  std::erase_if(options.hosts, [&](const Host& host) {
    if (host.name.empty()) return false;
    const auto probe = [&] {
      auto all = words(options.remote_shell);
      all.insert(all.end(), {host.name, "true"});
      return all;
    }();
    const pid_t pid = fork();
    if (pid == 0) become(probe, {}, false);
    int status = 0;
    const bool answers =
        pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!answers) log::warn("{} does not answer; going on without it", host.name);
    return !answers;
  });
}

std::string describe(const Process& process) {
  const std::string where = process.host.empty() ? "" : " on " + process.host;
  return process.code > 128
             ? fmt::format("rank {}{} was ended by signal {} ({})", process.rank, where, process.code - 128,
                           strsignal(process.code - 128))
             : fmt::format("rank {}{} ended with exit code {}", process.rank, where, process.code);
}

}  // namespace

std::vector<Host> parse_hosts(const std::string& list) {
  std::vector<Host> hosts;
  std::istringstream stream(list);
  for (std::string entry; std::getline(stream, entry, ',');) {
    const size_t colon = entry.rfind(':');
    Host host{entry.substr(0, colon), 1};
    if (colon != std::string::npos) {
      const char *begin = entry.data() + colon + 1, *end = entry.data() + entry.size();
      const auto [parsed, error] = std::from_chars(begin, end, host.processes);
      if (error != std::errc() || parsed != end || host.processes < 1) host.name.clear();
    }
    if (host.name.empty() || host.name.starts_with('-')) {
      throw UserError(fmt::format("--hosts: \"{}\": expected HOST or HOST:PROCESSES", entry),
                      "for example --hosts node1:2,node2:2");
    }
    hosts.push_back(host);
  }
  if (hosts.empty()) throw UserError("--hosts: the list is empty", "for example --hosts node1:2,node2:2");
  return hosts;
}

std::vector<std::vector<std::string>> launch_environments(const LaunchOptions& options, int restarts) {
  const int size = processes_of(options.hosts);
  const std::string address = !options.address.empty()        ? options.address
                              : options.hosts[0].name.empty() ? "127.0.0.1"
                                                              : options.hosts[0].name;
  std::vector<std::vector<std::string>> all;
  for (const Host& host : options.hosts) {
    for (int local = 0; local < host.processes; ++local) {
      all.push_back({fmt::format("RANK={}", all.size()), fmt::format("WORLD_SIZE={}", size),
                     fmt::format("LOCAL_RANK={}", local), fmt::format("LOCAL_WORLD_SIZE={}", host.processes),
                     "MASTER_ADDR=" + address, fmt::format("MASTER_PORT={}", options.port),
                     fmt::format("TORCHELASTIC_RESTART_COUNT={}", restarts),
                     "TORCHELASTIC_RUN_ID=" + options.job});
    }
  }
  return all;
}

int launch(LaunchOptions options, const std::vector<std::string>& command) {
  const Interrupt interrupt;
  if (options.job.empty()) options.job = random_name();
  for (int restarts = 0;; ++restarts) {
    LaunchOptions attempt = options;
    if (attempt.port == 0) attempt.port = is_local(options.hosts) ? free_port() : 29500;
    auto processes = start(attempt, command, restarts);
    const Process* failed = watch(processes, interrupt);
    if (failed == nullptr) return 0;
    const bool hopeless =
        failed->code == exit_user_error || failed->code == exit_interrupted || failed->code == 127;
    if (!hopeless) log::error("{}", describe(*failed));
    if (hopeless || interrupt.requested() || restarts == options.max_restarts) return failed->code;
    if (!is_local(options.hosts)) drop_lost_hosts(options);
    if (options.hosts.empty()) return failed->code;
    log::info("starting again with a world size of {} ({} of {} restarts)", processes_of(options.hosts),
              restarts + 1, options.max_restarts);
  }
}

}  // namespace calque
