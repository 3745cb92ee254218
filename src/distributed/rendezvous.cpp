#include "rendezvous.h"

#include <c10/util/Logging.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/distributed/build_identity.h"
#include "network.h"

namespace calque {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using StorePointer = c10::intrusive_ptr<c10d::Store>;

namespace {

constexpr Milliseconds rendezvous_interval{20};
constexpr Milliseconds reading_patience{10'000};
constexpr double name_patience_seconds = 60;  // the name of a machine that has just started may not be known
constexpr int most_named = 8;

std::string get(c10d::Store& store, const std::string& key) {
  const auto value = store.get(key);
  return {value.begin(), value.end()};
}

std::string line_of(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string allowed_cores() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Cpus_allowed_list:")) return line.substr(line.find_first_not_of(" \t", 18));
  }
  return "";
}

json to_json(const Introduction& one) {
  return {{"name", one.name},   {"machine", one.machine},   {"cores", one.cores}, {"network", one.network},
          {"nonce", one.nonce}, {"restarts", one.restarts}, {"job", one.job},     {"claims", one.claims}};
}

Introduction from_json(const json& j) {
  return {j.at("name"),  j.at("machine"), j.at("cores"),    j.at("network"),
          j.at("nonce"), j.at("job"),     j.at("restarts"), j.at("claims").get<Claims>()};
}

std::string key_of(const char* kind, int rank) { return fmt::format("{}/{}", kind, rank); }

RankLost unreachable(const World& world) {
  return RankLost(
      fmt::format("rank {} cannot reach rank 0 at {}:{}: it did not come within {:g} seconds, or "
                  "has ended",
                  world.rank, world.address, world.port, world.start_seconds));
}

// Where a machine that has just started is not known by its name yet, not even to itself (Kubernetes).
void wait_for_name(const World& world) {
  const auto until = Clock::now() + milliseconds(std::min(world.start_seconds, name_patience_seconds));
  for (;;) {
    try {
      numeric_addresses(world.address);
      return;
    } catch (const UserError&) {
      if (Clock::now() > until) throw;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

StorePointer connect_store(World& world) {
  FLAGS_caffe2_log_level = 2;  // errors alone: c10d warns of hosts without a name
  wait_for_name(world);
  if (!world.has_agent) world.address = reachable_address(world.address, world.all_local);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(world.port);
  options.isServer = world.is_first() && !world.has_agent;
  options.waitWorkers = false;
  options.timeout = milliseconds(world.start_seconds);
  std::string address = world.address;
  if (options.isServer) {
    const Listener listener = listen_at(world.address, world.port);
    options.masterListenFd = listener.socket;
    address = listener.address;
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(address, options);
  } catch (const std::exception&) {
    throw unreachable(world);
  }
}

// Two jobs at one port must not mix. This is no protection from people: the store is open to all who reach
// it.
void check_job(const World& world, c10d::Store& store) {
  if (world.has_agent) return;  // of one job only
  const std::string own = hex(hash_bytes(world.token));
  if (world.is_first()) {
    store.set("calque/job", bytes(own));
    return;
  }
  std::string theirs;
  try {
    theirs = get(store, "calque/job");
  } catch (const std::exception&) {
    throw unreachable(world);
  }
  if (theirs != own) {
    throw UserError(
        fmt::format("rank {}: another job listens at {}:{}", world.rank, world.address, world.port),
        "give each job a MASTER_PORT of its own, and all its processes the same CALQUE_JOB_TOKEN");
  }
}

// Rank 0 answers each process that joins. The store may be older than this start of the processes, and hold
// what those before have said (torchrun keeps its own over restarts): only a process that is here reads its
// answer.
class Reception {
 public:
  Reception(const World& world, StorePointer job)
      : world_(world),
        job_(std::move(job)),
        start_(random_name()),
        store_(c10::make_intrusive<c10d::PrefixStore>(start_, job_)) {}

  StorePointer store() const { return store_; }

  // The ranks that have not come in time.
  std::vector<int> wait_for_all() {
    const auto until = Clock::now() + milliseconds(world_.start_seconds);
    std::vector<int> missing;
    for (int rank = 1; rank < world_.size; ++rank) missing.push_back(rank);
    while (!missing.empty() && Clock::now() < until) {
      std::erase_if(missing, [&](int rank) {
        answer(rank);
        return store_->check({key_of("introduction", rank)});
      });
      if (!missing.empty()) std::this_thread::sleep_for(rendezvous_interval);
    }
    return missing;
  }

 private:
  void answer(int rank) {
    if (!job_->check({key_of("join", rank)})) return;
    const std::string nonce = get(*job_, key_of("join", rank));
    if (answered_.insert(nonce).second) job_->set("answer/" + nonce, bytes(start_));
  }

  const World& world_;
  StorePointer job_;
  std::string start_;
  StorePointer store_;
  std::set<std::string> answered_;
};

std::string describe_missing(const World& world, const std::vector<int>& missing) {
  std::string ranks;
  for (size_t i = 0; i < missing.size() && i < most_named; ++i)
    ranks += fmt::format("{}{}", i == 0 ? "" : ", ", missing[i]);
  if (missing.size() > most_named) ranks += ", …";
  return fmt::format("{} of {} processes did not come within {:g} seconds: rank{} {}", missing.size(),
                     world.size, world.start_seconds, missing.size() == 1 ? "" : "s", ranks);
}

// Rank 0: waits for all, and tells all who is there.
StorePointer receive_all(const World& world, const StorePointer& job, const Introduction& own) {
  Reception reception(world, job);
  const auto missing = reception.wait_for_all();
  const StorePointer store = reception.store();
  if (!missing.empty()) {
    const std::string problem = describe_missing(world, missing);
    store->set("all", bytes(json{{"problem", problem}}.dump()));
    std::this_thread::sleep_for(std::chrono::seconds(1));  // the others still read it
    throw RankLost(problem);
  }
  json processes = json::array({to_json(own)});
  for (int rank = 1; rank < world.size; ++rank)
    processes.push_back(json::parse(get(*store, key_of("introduction", rank))));
  const bool one_network = std::all_of(processes.begin(), processes.end(),
                                       [&](const json& one) { return one["network"] == own.network; });
  std::string address = own_address_towards(world.address, world.port);
  if (!one_network && is_loopback(address)) {
    const std::string reachable = own_network_address();
    if (!reachable.empty()) address = reachable;
  }
  for (int rank = 0; rank < world.size; ++rank) store->set(key_of("beat", rank), bytes("not yet"));
  store->set("all", bytes(json{{"processes", processes}, {"address", address}}.dump()));
  return store;
}

StorePointer join(const World& world, const StorePointer& job, const Introduction& own) {
  const Milliseconds own_patience = milliseconds(world.start_seconds);
  const Milliseconds patience = own_patience + std::min(own_patience, reading_patience);
  try {
    job->set(key_of("join", world.rank), bytes(own.nonce));
    job->wait({"answer/" + own.nonce}, patience);
    const auto store = c10::make_intrusive<c10d::PrefixStore>(get(*job, "answer/" + own.nonce), job);
    store->set(key_of("introduction", world.rank), bytes(to_json(own).dump()));
    store->wait({"all"}, patience);
    return store;
  } catch (const std::exception&) {
    throw unreachable(world);
  }
}

// The same on every rank, which has all claims before rank 0 may end.
void check_claims(const World& world, const Meeting& meeting) {
  std::vector<Claims> claims;
  std::vector<std::string> names;
  for (const Introduction& one : meeting.processes) {
    claims.push_back(one.claims);
    names.push_back(fmt::format("rank {} ({})", names.size(), one.name));
  }
  const std::string difference = describe_difference(claims, names);
  meeting.store->set(key_of("read", world.rank), bytes("1"));
  if (difference.empty()) return;
  if (world.is_first()) {
    std::vector<std::string> keys;
    for (int rank = 0; rank < world.size; ++rank) keys.push_back(key_of("read", rank));
    try {
      meeting.store->wait(keys, reading_patience);
    } catch (const std::exception&) {  // a process has ended meanwhile
    }
  }
  throw UserError(difference, "all processes of a job need the same program and the same command");
}

}  // namespace

Introduction introduce_this_process(const World& world, const Claims& claims) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::error_code ignored;
  Introduction own;
  own.name = fmt::format("{}, process {}", host, getpid());
  own.machine = fmt::format("{} {}", host, line_of("/proc/sys/kernel/random/boot_id"));
  own.cores = allowed_cores();
  own.network = own.machine + " " + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  own.nonce = random_name();
  own.job = world.job;
  own.restarts = world.restarts;
  own.claims = {{"the build of calque", build_identity()}, {"LibTorch", TORCH_VERSION}};
  own.claims.insert(own.claims.end(), claims.begin(), claims.end());
  return own;
}

Meeting meet(const World& given, const Claims& claims) {
  World world = given;
  const Introduction own = introduce_this_process(world, claims);
  const StorePointer raw = connect_store(world);
  check_job(world, *raw);
  const auto job =
      c10::make_intrusive<c10d::PrefixStore>("calque/" + hex(hash_bytes("job " + world.token)), raw);
  Meeting meeting;
  meeting.store = world.is_first() ? receive_all(world, job, own) : join(world, job, own);
  const json all = json::parse(get(*meeting.store, "all"));
  if (all.contains("problem")) throw RankLost(all["problem"].get<std::string>());
  for (const json& one : all.at("processes")) meeting.processes.push_back(from_json(one));
  meeting.address = all.at("address");
  if (meeting.processes[static_cast<size_t>(world.rank)].nonce != own.nonce)
    throw UserError(fmt::format("rank {}: another process has this rank, too", world.rank));
  check_claims(world, meeting);
  return meeting;
}

void place(World& world, const std::vector<Introduction>& processes) {
  const Introduction& own = processes[static_cast<size_t>(world.rank)];
  world.local_rank = 0;
  world.local_size = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (processes[i].machine != own.machine) continue;
    world.local_rank += i < static_cast<size_t>(world.rank);
    world.local_size += i == static_cast<size_t>(world.rank) || share_cores(processes[i].cores, own.cores);
  }
  world.restarts = 0;
  for (const Introduction& one : processes) world.restarts = std::max(world.restarts, one.restarts);
  world.job = processes.front().job;
}

bool share_cores(const std::string& a, const std::string& b) {
  const auto ranges = [](const std::string& list) {
    std::vector<std::pair<int, int>> all;
    const char *at = list.data(), *const end = list.data() + list.size();
    while (at < end) {
      int first = 0;
      at = std::from_chars(at, end, first).ptr;
      int last = first;
      if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
      all.emplace_back(first, last);
      if (at < end) ++at;
    }
    return all;
  };
  if (a.empty() || b.empty()) return true;  // nobody knows
  for (const auto& [first, last] : ranges(a)) {
    for (const auto& [other_first, other_last] : ranges(b)) {
      if (first <= other_last && other_first <= last) return true;
    }
  }
  return false;
}

std::string describe_difference(const std::vector<Claims>& claims, const std::vector<std::string>& names) {
  const Claims& first = claims.front();
  for (size_t rank = 1; rank < claims.size(); ++rank) {
    const Claims& other = claims[rank];
    for (size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
      if (i < first.size() && i < other.size() && first[i] == other[i]) continue;
      const std::string& name = (i < first.size() ? first[i] : other[i]).first;
      const auto value_of = [&](const Claims& from) {
        return i < from.size() && from[i].first == name ? from[i].second : std::string("nothing");
      };
      return fmt::format("{}: {} on {}, but {} on {}", name, value_of(first), names[0], value_of(other),
                         names[rank]);
    }
  }
  return "";
}

}  // namespace calque
