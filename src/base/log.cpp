#include "calque/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace calque::log {
namespace {

std::atomic<bool> live_line_shown = false;
std::string message_prefix;

// Prints messages without a timestamp; with the level for warnings and errors; in colour on a terminal.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  StderrSink()
      : terminal_(isatty(STDERR_FILENO) == 1), colour_(terminal_ && std::getenv("NO_COLOR") == nullptr) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const char* prefix = "";
    if (message.level >= spdlog::level::err) {
      prefix = colour_ ? "\x1b[1;31merror:\x1b[0m " : "error: ";
    } else if (message.level == spdlog::level::warn) {
      prefix = colour_ ? "\x1b[1;33mwarning:\x1b[0m " : "warning: ";
    }
    if (terminal_ && live_line_shown.exchange(false)) std::fputs("\r\x1b[K", stderr);
    std::fprintf(stderr, "%s%s%.*s\n", message_prefix.c_str(), prefix,
                 static_cast<int>(message.payload.size()), message.payload.data());
  }
  void flush_() override { std::fflush(stderr); }

 private:
  bool terminal_;
  bool colour_;
};

std::shared_ptr<spdlog::logger>& instance() {
  static auto silent = std::make_shared<spdlog::logger>("calque");  // has no sink
  return silent;
}

spdlog::sink_ptr file_sink;
std::atomic<bool> is_started = false;

}  // namespace

spdlog::logger& logger() { return *instance(); }

void start(Verbosity verbosity) {
  auto logger = std::make_shared<spdlog::logger>("calque", std::make_shared<StderrSink>());
  const auto level = verbosity == Verbosity::quiet     ? spdlog::level::warn
                     : verbosity == Verbosity::verbose ? spdlog::level::debug
                                                       : spdlog::level::info;
  logger->sinks().front()->set_level(level);
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  instance() = logger;
  is_started = true;
}

bool shows_progress() { return is_started && logger().sinks().front()->level() <= spdlog::level::info; }

void start_file(const std::filesystem::path& path) {
  stop_file();
  file_sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string(), false);
  file_sink->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
  logger().sinks().push_back(file_sink);
}

void stop_file() {
  if (!file_sink) return;
  std::erase(logger().sinks(), file_sink);
  file_sink.reset();
}

void set_prefix(const std::string& prefix) { message_prefix = prefix; }

void set_live_line(bool shown) { live_line_shown = shown; }

}  // namespace calque::log
