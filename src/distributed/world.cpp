#include "calque/distributed/world.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "calque/base/error.h"

namespace calque {
namespace {

int number(const Environment& environment, const std::string& name, int otherwise, int least) {
  const std::string text = environment(name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    throw UserError(fmt::format("environment: {}={}: expected a number from {} up", name, text, least),
                    fmt::format("`unset {}` if this process is alone", name));
  }
  return value;
}

// The names that one kind of launcher gives to the same things.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // Not SLURM_NTASKS: a batch script has it too, in which a single process runs.
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};
constexpr const Names &own = launchers[0], &pmi = launchers[2], &slurm = launchers[3];

// Slurm's own PMI sets the rank and the size, and says nothing of the machines; Slurm's variables do.
bool is_slurms_pmi(const Environment& environment) {
  return environment(pmi.local_size).empty() && !environment(slurm.rank).empty() &&
         environment(slurm.size) == environment(pmi.size);
}

// The launcher that started this process; none: it is alone.
const Names* find_launcher(const Environment& environment) {
  for (const Names& names : launchers) {
    const bool has_rank = !environment(names.rank).empty(), has_size = !environment(names.size).empty();
    if (has_rank && has_size) return &names == &pmi && is_slurms_pmi(environment) ? &slurm : &names;
    if (has_rank != has_size && &names == &own) {
      const auto [set, missing] =
          has_rank ? std::pair(names.rank, names.size) : std::pair(names.size, names.rank);
      throw UserError(fmt::format("environment: {} is set, but {} is not", set, missing),
                      fmt::format("set both, or `unset {}` if this process is alone", set));
    }
  }
  return nullptr;
}

double seconds(const Environment& environment, const std::string& name, double otherwise) {
  const std::string text = environment(name);
  if (text.empty()) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || value > 1e7) {
    throw UserError(fmt::format("environment: {}={}: expected a number of seconds", name, text));
  }
  return value;
}

bool is_loopback_name(const std::string& address) {
  return address.empty() || address == "localhost" || address == "::1" || address.starts_with("127.");
}

// How many of the processes are on this machine; 0: nobody says.
int find_local_size(const Environment& environment, const Names& names, const World& world) {
  const int said = number(environment, names.local_size, 0, 1);
  if (said > 0) return said;
  if (&names == &slurm) {
    const int node = number(environment, "SLURM_NODEID", 0, 0);
    const int tasks = slurm_tasks(environment("SLURM_STEP_TASKS_PER_NODE"), node);
    if (tasks > 0) return tasks;
    if (number(environment, "SLURM_STEP_NUM_NODES", 0, 1) == 1) return world.size;
    return number(environment, "SLURM_NTASKS_PER_NODE", 0, 1);
  }
  const std::string address = environment("MASTER_ADDR");
  // MPI starts processes on several machines without an address.
  const bool may_be_local = !address.empty() || &names == &own;
  return may_be_local && is_loopback_name(address) ? world.size : 0;
}

// Where every machine finds rank 0, if no MASTER_ADDR says it.
std::string find_address(const Environment& environment, const World& world) {
  if (world.all_local) return "127.0.0.1";
  const std::string hosts = environment("SLURM_STEP_NODELIST");
  if (!hosts.empty()) return first_slurm_host(hosts);
  throw UserError("environment: MASTER_ADDR is not set, and the processes may run on several machines",
                  "set it to the address of the machine of rank 0");
}

std::string find_token(const Environment& environment, const Names& names, const World& world) {
  const std::string token = environment("CALQUE_JOB_TOKEN");
  if (!token.empty()) return token;
  if (!world.job.empty()) return world.job;
  if (&names != &slurm || environment("SLURM_JOB_ID").empty()) return "";
  return fmt::format("slurm-{}.{}", environment("SLURM_JOB_ID"), environment("SLURM_STEP_ID"));
}

}  // namespace

std::string first_slurm_host(const std::string& list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

int slurm_tasks(const std::string& list, int node) {
  const char *at = list.data(), *const end = list.data() + list.size();
  while (at < end) {
    int tasks = 0, nodes = 1;
    at = std::from_chars(at, end, tasks).ptr;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      at = std::from_chars(at + 2, end, nodes).ptr;
      if (at == end || *at++ != ')') return 0;
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (at < end && *at++ != ',') return 0;
  }
  return 0;
}

World read_world(const Environment& environment) {
  World world;
  const Names* names = find_launcher(environment);
  if (names == nullptr) return world;
  world.rank = number(environment, names->rank, 0, 0);
  world.size = number(environment, names->size, 1, 1);
  if (world.rank >= world.size) {
    throw UserError(fmt::format("environment: {}={}, but {}={}: ranks are counted from 0", names->rank,
                                world.rank, names->size, world.size));
  }
  const int local_size = find_local_size(environment, *names, world);
  world.local_size = std::max(1, local_size);
  world.all_local = local_size == world.size;
  world.local_rank = number(environment, names->local_rank, world.all_local ? world.rank : 0, 0);
  const std::string address = environment("MASTER_ADDR");
  world.address = address.empty() ? find_address(environment, world) : address;
  world.port = number(environment, "MASTER_PORT", world.port, 1);
  world.interface = environment("GLOO_SOCKET_IFNAME");
  world.has_agent = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  world.restarts = number(environment, "TORCHELASTIC_RESTART_COUNT", 0, 0);
  world.job = environment("TORCHELASTIC_RUN_ID");
  if (world.job == "none") world.job.clear();  // torchrun without --rdzv-id
  world.token = find_token(environment, *names, world);
  world.start_seconds = seconds(environment, "CALQUE_START_SECONDS", world.start_seconds);
  world.timeout_seconds = seconds(environment, "CALQUE_TIMEOUT_SECONDS", world.timeout_seconds);
  return world;
}

World world_of_this_process() {
  return read_world([](const std::string& name) {
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    return std::string(value != nullptr ? value : "");
  });
}

}  // namespace calque
