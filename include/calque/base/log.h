// The logger: talk for people, on stderr (data goes to stdout), and into a run's log.txt while one is open.
// Quiet shows warnings and errors only; verbose adds the details.
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>

namespace calque::log {

enum class Verbosity { quiet, normal, verbose };

// Sets the program's logger up; call once, in main.
void start(Verbosity verbosity);

// Copies every message into a file as well, with its time, until stop_file.
void start_file(const std::filesystem::path& path);
void stop_file();

// Before a message is printed on a terminal the live progress line is wiped; Progress registers itself here.
void set_live_line(bool shown);

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace calque::log
