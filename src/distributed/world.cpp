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

// The launcher that started this process; none: it is alone.
const Names* find_launcher(const Environment& environment) {
  for (const Names& names : launchers) {
    const bool has_rank = !environment(names.rank).empty(), has_size = !environment(names.size).empty();
    if (has_rank && has_size) return &names;
    if (has_rank != has_size && &names == &launchers[0]) {
      const auto [set, missing] =
          has_rank ? std::pair(names.rank, names.size) : std::pair(names.size, names.rank);
      throw UserError(fmt::format("environment: {} is set, but {} is not", set, missing),
                      fmt::format("set both, or `unset {}` if this process is alone", set));
    }
  }
  return nullptr;
}

// Where every machine finds rank 0, if no MASTER_ADDR says it.
std::string find_address(const Environment& environment, const World& world) {
  if (world.local_size == world.size) return "127.0.0.1";
  const std::string hosts = environment("SLURM_STEP_NODELIST");
  if (!hosts.empty()) return first_slurm_host(hosts);
  throw UserError("environment: MASTER_ADDR is not set, and the processes run on several machines",
                  "set it to the address of the machine of rank 0");
}

}  // namespace

std::string first_slurm_host(const std::string& list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

World read_world(const Environment& environment) {
  World world;
  const Names* names = find_launcher(environment);
  if (names == nullptr) return world;
  world.rank = number(environment, names->rank, 0, 0);
  world.size = number(environment, names->size, 1, 1);
  world.local_rank = number(environment, names->local_rank, world.rank, 0);
  // Where nobody says how many processes this machine has, an address means that there are several machines.
  world.local_size =
      number(environment, names->local_size, environment("SLURM_STEP_NODELIST").empty() ? world.size : 1, 1);
  if (world.rank >= world.size) {
    throw UserError(fmt::format("environment: {}={}, but {}={}: ranks are counted from 0", names->rank,
                                world.rank, names->size, world.size));
  }
  const std::string address = environment("MASTER_ADDR");
  world.address = address.empty() ? find_address(environment, world) : address;
  world.port = number(environment, "MASTER_PORT", world.port, 1);
  world.interface = environment("GLOO_SOCKET_IFNAME");
  world.has_agent = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  world.restarts = number(environment, "TORCHELASTIC_RESTART_COUNT", 0, 0);
  world.job = environment("TORCHELASTIC_RUN_ID");
  if (world.job == "none") world.job.clear();  // torchrun without --rdzv-id
  return world;
}

World world_of_this_process() {
  return read_world([](const std::string& name) {
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    return std::string(value != nullptr ? value : "");
  });
}

}  // namespace calque
