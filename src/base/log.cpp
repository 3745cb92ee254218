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

// Plain sentences for people: no time stamp, a level only where it matters, colour only on a terminal.
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
    std::fprintf(stderr, "%s%.*s\n", prefix, static_cast<int>(message.payload.size()),
                 message.payload.data());
  }
  void flush_() override { std::fflush(stderr); }

 private:
  bool terminal_;
  bool colour_;
};

spdlog::sink_ptr file_sink;

}  // namespace

void start(Verbosity verbosity) {
  auto logger = std::make_shared<spdlog::logger>("calque", std::make_shared<StderrSink>());
  const auto level = verbosity == Verbosity::quiet     ? spdlog::level::warn
                     : verbosity == Verbosity::verbose ? spdlog::level::debug
                                                       : spdlog::level::info;
  logger->sinks().front()->set_level(level);
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
}

void start_file(const std::filesystem::path& path) {
  stop_file();
  file_sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string(), false);
  file_sink->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
  spdlog::default_logger()->sinks().push_back(file_sink);
}

void stop_file() {
  if (!file_sink) return;
  std::erase(spdlog::default_logger()->sinks(), file_sink);
  file_sink.reset();
}

void set_live_line(bool shown) { live_line_shown = shown; }

}  // namespace calque::log
