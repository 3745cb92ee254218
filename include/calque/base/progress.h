// Progress: how far a long task is and when it will be done. On a terminal one live line, elsewhere a plain
// line every ten seconds; nothing at all for what is done within a second, or when asked to be quiet.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace calque {

class Progress {
 public:
  // `total` in `unit`s («pairs», «bytes»); 0 where it is not known.
  Progress(std::string label, int64_t total, std::string unit);
  ~Progress();

  // May be called from several threads, as often as one likes.
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

// Replaces the live line on stderr by `text`; does nothing where stderr is no terminal.
void show_live_line(const std::string& text);
void clear_live_line();
bool stderr_is_terminal();

}  // namespace calque
