#include "calque/base/live_table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"

namespace calque {

LiveTable::LiveTable() : visible_(stderr_is_terminal() && log::shows_progress()) {}

// The cursor stays on the first line of the table, where the logger prints its messages.
void LiveTable::show(const std::vector<std::string>& lines) {
  if (!visible_ || lines.empty()) return;
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 1;
  const size_t columns = known ? size.ws_col : 80, rows = known ? size.ws_row : 24;
  const size_t count = std::min(lines.size(), rows - 1);
  std::string text = "\r\x1b[J";
  for (size_t i = 0; i < count; ++i) text += shorten(lines[i], columns - 1) + "\n";
  text += fmt::format("\x1b[{}A", count);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

void LiveTable::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[J", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace calque
