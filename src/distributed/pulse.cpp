#include "pulse.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

namespace calque {

namespace {

using namespace std::chrono_literals;

constexpr auto beat_interval = 500ms;
constexpr auto beat_patience = 3000ms;  // a process whose line stands still for so long is dead
// A process that the others have given up ends itself, if its main thread does not notice.
constexpr auto own_end = 15s;
constexpr double busy_share = 0.2;  // of one core: less may be the threads of the network

std::vector<std::string> keys(int size) {
  std::vector<std::string> all;
  for (int i = 0; i < size; ++i) all.push_back(fmt::format("beat/{}", i));
  return all;
}

std::vector<std::string> lines(c10d::Store& store, int size) {
  std::vector<std::string> all;
  for (const auto& value : store.multiGet(keys(size))) all.emplace_back(value.begin(), value.end());
  return all;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Bytes that this process has read from disks and written to them. Not through sockets: the heart uses those.
uint64_t disk_bytes() {
  std::ifstream file("/proc/self/io");
  uint64_t bytes = 0, value = 0;
  for (std::string key; file >> key >> value;) {
    if (key == "read_bytes:" || key == "write_bytes:") bytes += value;
  }
  return bytes;
}

// Whether the process has worked since the last call.
class Work {
 public:
  bool done() {
    const double processor = processor_seconds();
    const uint64_t disk = disk_bytes();
    const auto now = Pulse::Clock::now();
    const double passed = Pulse::Seconds(now - at_).count();
    const bool worked = processor - processor_ > busy_share * passed || disk != disk_;
    processor_ = processor;
    disk_ = disk;
    at_ = now;
    return worked;
  }

 private:
  double processor_ = processor_seconds();
  uint64_t disk_ = disk_bytes();
  Pulse::Clock::time_point at_ = Pulse::Clock::now();
};

}  // namespace

Pulse::Pulse(c10::intrusive_ptr<c10d::Store> store, int rank, int size, double timeout_seconds)
    : state_(std::make_shared<State>()) {
  state_->store = std::move(store);
  state_->rank = rank;
  state_->size = size;
  state_->timeout_seconds = timeout_seconds;
  state_->others.resize(static_cast<size_t>(size));
  show(*state_, *state_->store);
  std::thread([state = state_] { live(state); }).detach();
}

Pulse::~Pulse() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, 1s, [&] { return state_->stopped; });
}

// "17 42 w": the seventeenth line; the main thread has made 42 steps, and waits for the others.
void Pulse::show(State& state, c10d::Store& store) {
  const std::string line =
      fmt::format("{} {} {}", state.beat++, state.progress.load(), state.waiting ? "w" : "g");
  store.set(fmt::format("beat/{}", state.rank), std::vector<uint8_t>(line.begin(), line.end()));
}

void Pulse::look(State& state, c10d::Store& store) {
  const auto all = lines(store, state.size);
  const std::lock_guard lock(state.mutex);
  for (size_t i = 0; i < all.size(); ++i) {
    Other& other = state.others[i];
    const std::string progress = all[i].substr(std::min(all[i].size(), all[i].find(' ')));
    if (progress == other.progress) continue;
    other.progress = progress;
    other.waiting = progress.ends_with('w');
    other.changed = Clock::now();
  }
}

// The main thread may hang for ever, while the others have ended.
void Pulse::end_if_given_up(State& state, c10d::Store& store, Standstill& standstill) {
  const uint64_t progress = state.progress;
  if (state.ended || progress != standstill.progress || !store.check({"verdict"})) {
    standstill = {progress, Clock::now()};
  } else if (Clock::now() - standstill.since > own_end) {
    std::fprintf(stderr, "error: rank %d (process %d) makes no progress and was given up by the others\n",
                 state.rank, getpid());
    _exit(1);
  }
}

void Pulse::live(const std::shared_ptr<State>& state) {
  try {
    const auto store = state->store->clone();  // the other one may be waiting for an answer
    Work work;
    auto looked = Clock::now();
    Standstill standstill;
    for (;;) {
      {
        std::unique_lock lock(state->mutex);
        if (state->changed.wait_for(lock, beat_interval, [&] { return state->stop; })) break;
      }
      const bool worked = work.done();
      if (state->paused > 0 || (state->busy > 0 && !state->waiting && worked)) ++state->progress;
      show(*state, *store);
      end_if_given_up(*state, *store, standstill);
      if (Seconds(Clock::now() - looked).count() < state->timeout_seconds / 8) continue;
      look(*state, *store);
      looked = Clock::now();
    }
  } catch (const std::exception&) {  // rank 0 is gone: the next operation says so
  }
  const std::lock_guard lock(state->mutex);
  state->store.reset();  // rank 0's is the server, which ends with the group
  state->stopped = true;
  state->changed.notify_all();
}

std::vector<int> Pulse::stuck() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<int> ranks;
  for (int i = 0; i < state_->size; ++i) {
    const Other& other = state_->others[static_cast<size_t>(i)];
    if (i != state_->rank && !other.waiting &&
        Seconds(Clock::now() - other.changed).count() > state_->timeout_seconds)
      ranks.push_back(i);
  }
  return ranks;
}

bool Pulse::all_stand_still() const {
  const std::lock_guard lock(state_->mutex);
  for (int i = 0; i < state_->size; ++i) {
    if (i != state_->rank && Seconds(Clock::now() - state_->others[static_cast<size_t>(i)].changed).count() <=
                                 state_->timeout_seconds)
      return false;
  }
  return true;
}

std::vector<int> Pulse::find_dead(c10d::Store& store, int rank, int size) {
  const auto before = lines(store, size);
  std::this_thread::sleep_for(beat_patience);
  const auto after = lines(store, size);
  std::vector<int> dead;
  for (int i = 0; i < size; ++i) {
    if (i != rank && before[static_cast<size_t>(i)] == after[static_cast<size_t>(i)]) dead.push_back(i);
  }
  return dead;
}

}  // namespace calque
