#include "calque/base/quiet_log.h"

#include <spdlog/sinks/sink.h>

#include "calque/base/log.h"

namespace calque {

QuietLog::QuietLog() {
  if (log::logger().sinks().empty()) return;
  terminal_ = log::logger().sinks().front();
  level_ = terminal_->level();
  terminal_->set_level(spdlog::level::err);
}

void QuietLog::say(const std::string& text) {
  if (!terminal_) return;
  terminal_->set_level(level_);
  log::info("{}", text);
  terminal_->set_level(spdlog::level::err);
}

QuietLog::~QuietLog() {
  if (terminal_) terminal_->set_level(level_);
}

}  // namespace calque
