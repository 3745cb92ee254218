// The logger: prints messages for people to stderr (data goes to stdout), and also to a run's log.txt while
// it is open. The library is silent until start() is called.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace calque::log {

enum class Verbosity { quiet, normal, verbose };

// Starts the program's logger. Quiet shows only warnings and errors; verbose adds debug messages.
void start(Verbosity verbosity);

// Written before every message on stderr: who says it, where several processes do.
void set_prefix(const std::string& prefix);

// Also writes every message to a file, with a timestamp, until stop_file() is called.
void start_file(const std::filesystem::path& path);
void stop_file();

// Says whether a live progress line is on the terminal. The logger erases it before it prints a message.
void set_live_line(bool shown);
bool shows_progress();  // false if quiet or not started

spdlog::logger& logger();

template <class... Args>
void debug(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().debug(format, std::forward<Args>(args)...);
}
template <class... Args>
void info(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().info(format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().warn(format, std::forward<Args>(args)...);
}
template <class... Args>
void error(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().error(format, std::forward<Args>(args)...);
}

}  // namespace calque::log
