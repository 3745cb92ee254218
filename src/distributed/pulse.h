// Pulse: how the processes of a group see that each other one is alive, and goes on. Twice per second a
// thread of each writes a line of its own into the store, and now and then reads those of the others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace calque {

class Pulse {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  Pulse(c10::intrusive_ptr<c10d::Store> store, int rank, int size, double timeout_seconds);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  void note_progress() { state_->progress.fetch_add(1, std::memory_order_relaxed); }
  void set_waiting(bool waiting) { state_->waiting = waiting; }  // for others: they may not be waited for
  void add_busy(int change) { state_->busy += change; }  // while positive, using the processor is progress
  void add_paused(int change) { state_->paused += change; }  // while positive, being alive is progress
  void set_timeout(double seconds) { state_->timeout_seconds = seconds; }
  double timeout_seconds() const { return state_->timeout_seconds; }
  void end() { state_->ended = true; }  // the group has failed: its process ends by itself

  // The others that neither go on nor wait themselves, for the timeout.
  std::vector<int> stuck() const;
  // Whether none of the others has gone on for the timeout.
  bool all_stand_still() const;
  // Those whose lines do not change any more: they are dead, stopped or cut off. Takes three seconds, and
  // throws if the store is gone.
  static std::vector<int> find_dead(c10d::Store& store, int rank, int size);

 private:
  struct Other {
    std::string progress;
    bool waiting = false;
    Clock::time_point changed = Clock::now();
  };
  // Outlives the Pulse where the thread waits for a store that does not answer.
  struct State {
    c10::intrusive_ptr<c10d::Store> store;
    int rank, size;
    std::atomic<double> timeout_seconds;
    std::atomic<uint64_t> progress{0};
    std::atomic<int> busy{0}, paused{0};
    std::atomic<bool> waiting{false}, ended{false};
    uint64_t beat = 0;
    mutable std::mutex mutex;
    std::condition_variable changed;
    bool stop = false, stopped = false;
    std::vector<Other> others;  // by rank
  };

  static void live(const std::shared_ptr<State>& state);
  static void show(State& state, c10d::Store& store);
  static void look(State& state, c10d::Store& store);
  struct Standstill {
    uint64_t progress = 0;
    Clock::time_point since = Clock::now();
  };
  static void end_if_given_up(State& state, c10d::Store& store, Standstill& standstill);

  std::shared_ptr<State> state_;
};

}  // namespace calque
