// Progress: shows how much of a long task is done and how much time is left. On a terminal it updates one
// line; otherwise it logs a line every ten seconds. Tasks shorter than a second and quiet mode show nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace calque {

class Progress {
 public:
  // `total` is a number of `unit` ("pairs", "bytes"); 0 if it is unknown.
  Progress(std::string label, int64_t total, std::string unit);
  ~Progress();

  // Thread-safe, and cheap enough to call for every item.
  void advance(int64_t count);

 private:
  void show(double elapsed_seconds, int64_t done);

  std::string label_;
  std::string unit_;
  std::atomic<int64_t> total_;
  std::atomic<int64_t> done_ = 0;
  std::atomic<int64_t> next_show_milliseconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_;
  bool shown_ = false;
  std::mutex mutex_;
};

// Replaces the live line on stderr with `text`. Does nothing if stderr is not a terminal.
void show_live_line(const std::string& text);
void clear_live_line();
bool stderr_is_terminal();

}  // namespace calque
