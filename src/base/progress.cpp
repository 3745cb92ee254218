#include "calque/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"

namespace calque {
namespace {

constexpr int64_t first_show_milliseconds = 1000;
constexpr int64_t terminal_interval_milliseconds = 200;
constexpr int64_t plain_interval_milliseconds = 10'000;

size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

bool stderr_is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  return terminal;
}

void show_live_line(const std::string& text) {
  if (!stderr_is_terminal() || !log::shows_progress()) return;
  std::fprintf(stderr, "\r\x1b[K%s", shorten(text, terminal_columns() - 1).c_str());
  std::fflush(stderr);
  log::set_live_line(true);
}

void clear_live_line() {
  if (!stderr_is_terminal() || !log::shows_progress()) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  log::set_live_line(false);
}

Progress::Progress(std::string label, int64_t total, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      next_show_milliseconds_(stderr_is_terminal() ? first_show_milliseconds : plain_interval_milliseconds),
      terminal_(stderr_is_terminal()) {}

Progress::~Progress() {
  if (terminal_ && shown_) clear_live_line();
}

void Progress::advance(int64_t count) {
  const int64_t done = done_ += count;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const auto milliseconds = static_cast<int64_t>(elapsed.count() * 1000);
  int64_t due = next_show_milliseconds_;
  if (milliseconds < due) return;
  const int64_t next =
      milliseconds + (terminal_ ? terminal_interval_milliseconds : plain_interval_milliseconds);
  if (next_show_milliseconds_.compare_exchange_strong(due, next)) show(elapsed.count(), done);
}

void Progress::show(double elapsed_seconds, int64_t done) {
  const std::lock_guard lock(mutex_);
  const int64_t total = total_;
  const auto amount = [&](int64_t n) { return unit_ == "bytes" ? format_bytes(n) : format_count(n); };
  const std::string unit = unit_ == "bytes" ? "" : " " + unit_;
  std::string text = label_ + ": " + amount(done);
  if (total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    text += fmt::format(" of {}{}, {:.0f} %", amount(total), unit, share * 100);
    if (share > 0.01) text += ", " + format_seconds(elapsed_seconds * (1 - share) / share) + " left";
  } else {
    text += unit + fmt::format(", {}", format_seconds(elapsed_seconds));
  }
  if (terminal_) {
    show_live_line(text);
  } else {
    log::info("{}", text);
  }
  shown_ = true;
}

}  // namespace calque
