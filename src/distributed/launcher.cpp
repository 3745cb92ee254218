#include "calque/distributed/launcher.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <thread>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "network.h"
#include "remote_host.h"

namespace calque {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto poll_interval = std::chrono::milliseconds(50);
// The others notice by themselves that one has failed; those that do not in this time are killed.
constexpr auto grace = std::chrono::seconds(15);
// sshd drops connections at random when more than ten wait to be let in (MaxStartups): so few at once, beside
// that of the watch, and the next ones a little later.
constexpr int processes_per_wave = 7;
constexpr auto wave_interval = std::chrono::seconds(1);
constexpr int exit_user_error = 2, exit_interrupted = 130, exit_not_found = 127, exit_of_ssh = 255;

struct Process {
  pid_t pid = -1;
  int rank = 0;
  std::string host;  // empty: this machine
  bool running = true;
  int code = 0;    // its exit code
  int signal = 0;  // that ended it
};

// Why an attempt failed, and the exit code for it.
struct Failure {
  int code;
  std::string what;
};

// All that runs in one attempt.
struct Attempt {
  std::vector<Process> processes;                     // by rank
  std::vector<std::unique_ptr<RemoteWatch>> watches;  // one per other machine

  void interrupt() const {
    for (const Process& one : processes) {
      if (one.running && one.host.empty()) kill(one.pid, SIGINT);
    }
    for (const auto& watch : watches) watch->signal("INT");
  }
  // All hosts at once.
  void let_go() const {
    for (const auto& watch : watches) watch->let_go();
  }
  void kill_all() const {
    for (const auto& watch : watches) watch->signal("KILL");
    for (const Process& one : processes) {
      if (one.running) kill(one.pid, SIGKILL);
    }
  }
};

int processes_of(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.processes; });
}

bool is_local(const std::vector<Host>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.name.empty(); });
}

// The shell stays: it gives an exit code for a process that a signal has ended, for which ssh has none.
std::string command_line(const Words& environment, const Words& command) {
  std::string line = fmt::format("cd {} && env", shell_quoted(std::filesystem::current_path().string()));
  for (const std::string& one : environment) line += " " + shell_quoted(one);
  for (const std::string& one : command) line += " " + shell_quoted(one);
  return line + "; exit $?";
}

// Only rank 0 reads from stdin and writes to stdout. Each process has a group of its own: an interrupt of the
// terminal comes to the launcher alone, which passes it on once.
Attempt start(const LaunchOptions& options, const RemoteShell& shell, const Words& command, int restarts) {
  const auto environments = launch_environments(options, restarts);
  Attempt attempt;
  std::vector<std::vector<size_t>> waves(1);  // ranks
  std::vector<std::string> marks;             // by rank
  for (const Host& host : options.hosts) {
    const std::string mark = fmt::format("CALQUE_LAUNCH={};", random_name());
    if (!host.name.empty()) attempt.watches.push_back(std::make_unique<RemoteWatch>(shell, host.name, mark));
    for (int i = 0; i < host.processes; ++i) {
      const auto wave = static_cast<size_t>(host.name.empty() ? 0 : i / processes_per_wave);
      if (wave >= waves.size()) waves.resize(wave + 1);
      waves[wave].push_back(attempt.processes.size());
      attempt.processes.push_back({.rank = static_cast<int>(attempt.processes.size()), .host = host.name});
      marks.push_back(mark);
    }
  }
  for (const auto& wave : waves) {
    if (&wave != &waves.front()) std::this_thread::sleep_for(wave_interval);
    for (const size_t rank : wave) {
      Process& process = attempt.processes[rank];
      Words environment = environments[rank];
      if (process.host.empty()) {
        process.pid = start_process(command, environment, rank == 0);
        continue;
      }
      environment.push_back(marks[rank]);
      process.pid = start_process(remote_command(shell, process.host, command_line(environment, command)), {},
                                  rank == 0);
    }
  }
  return attempt;
}

// Notes which have ended.
void poll(std::vector<Process>& processes) {
  for (Process& process : processes) {
    int status = 0;
    if (!process.running || waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    process.running = false;
    process.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    process.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
}

std::string describe(const Process& process) {
  const std::string rank =
      fmt::format("rank {}{}", process.rank, process.host.empty() ? "" : " on " + process.host);
  if (!process.host.empty() && process.code == exit_of_ssh)
    return fmt::format("{}: the connection failed (exit code {})", rank, process.code);
  // A shell on the way says it in its exit code.
  const int signal = process.signal > 0 ? process.signal : process.code - 128;
  return signal > 0 && signal < NSIG
             ? fmt::format("{} was ended by signal {} ({})", rank, signal, strsignal(signal))
             : fmt::format("{} ended with exit code {}", rank, process.code);
}

std::optional<Failure> find_failure(Attempt& attempt) {
  bool running = false;
  for (const Process& one : attempt.processes) {
    if (!one.running && one.code != 0) return Failure{one.code, describe(one)};
    running = running || one.running;
  }
  for (const auto& watch : attempt.watches) {
    if (!running || !watch->is_lost()) continue;
    watch->connect();  // to end the processes
    return Failure{exit_of_ssh,
                   fmt::format("{}: the connection that watches over its processes ended", watch->host())};
  }
  return std::nullopt;
}

// Waits for all to end; returns the first failure, if there is one.
std::optional<Failure> watch(Attempt& attempt, const Interrupt& interrupt) {
  std::optional<Failure> failure;
  Clock::time_point failed_at;
  bool passed_on = false;
  for (;;) {
    poll(attempt.processes);
    const bool ended = std::none_of(attempt.processes.begin(), attempt.processes.end(),
                                    [](const Process& one) { return one.running; });
    if (!failure) {
      failure = find_failure(attempt);
      failed_at = Clock::now();
    }
    if (ended) return failure;
    if (failure && Clock::now() - failed_at > grace) attempt.kill_all();
    if (interrupt.requested() && !std::exchange(passed_on, true)) attempt.interrupt();
    std::this_thread::sleep_for(poll_interval);
  }
}

// Leaves out the hosts on which nothing can be started any more.
void drop_lost_hosts(LaunchOptions& options, const RemoteShell& shell) {
  Words names;
  for (const Host& host : options.hosts) names.push_back(host.name);
  const auto answers = hosts_answer(shell, names);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!answers[i]) log::warn("{} does not answer; going on without it", names[i]);
  }
  keep_hosts(options, answers);
}

}  // namespace

void keep_hosts(LaunchOptions& options, const std::vector<bool>& answers) {
  if (!answers.empty() && !answers.front() && !options.address.empty()) {
    log::warn("--address {} was that of {}; the next host is reached by its name", options.address,
              options.hosts.front().name);
    options.address.clear();
  }
  std::vector<Host> kept;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) kept.push_back(options.hosts[i]);
  }
  options.hosts = kept;
}

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
                     "TORCHELASTIC_RUN_ID=" + options.job, "CALQUE_JOB_TOKEN=" + options.token});
    }
  }
  return all;
}

int launch(LaunchOptions options, const std::vector<std::string>& command) {
  const Interrupt interrupt;
  // A host that is gone must not end the launcher, which writes to it.
  signal(SIGPIPE, SIG_IGN);
  if (options.job.empty()) options.job = random_name();
  if (options.token.empty()) options.token = random_name();
  const bool local = is_local(options.hosts);
  const RemoteShell shell =
      local ? RemoteShell() : find_remote_shell(options.remote_shell, options.hosts.front().name);
  for (int restarts = 0;; ++restarts) {
    LaunchOptions attempt = options;
    if (attempt.port == 0) attempt.port = local ? free_port() : 29500;
    std::optional<Failure> failure;
    {
      // Its end waits for the processes of other machines, which hold the port and the run.
      Attempt running = start(attempt, shell, command, restarts);
      failure = watch(running, interrupt);
      running.let_go();
    }
    if (!failure) return 0;
    const bool hopeless = failure->code == exit_user_error || failure->code == exit_interrupted ||
                          failure->code == exit_not_found;
    if (!hopeless) log::error("{}", failure->what);
    if (hopeless || restarts == options.max_restarts) return failure->code;
    if (!local && !interrupt.requested()) drop_lost_hosts(options, shell);
    if (options.hosts.empty() || interrupt.requested()) return failure->code;
    log::info("starting again with a world size of {} ({} of {} restarts)", processes_of(options.hosts),
              restarts + 1, options.max_restarts);
  }
}

}  // namespace calque
