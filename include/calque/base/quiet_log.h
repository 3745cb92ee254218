// QuietLog: while it exists, only errors reach the terminal; the file of the log gets everything.
#pragma once

#include <spdlog/common.h>

#include <string>

namespace calque {

class QuietLog {
 public:
  QuietLog();
  ~QuietLog();
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

  void say(const std::string& text);  // a message that is shown nevertheless

 private:
  spdlog::sink_ptr terminal_;  // nothing where the logger is not started
  spdlog::level::level_enum level_ = spdlog::level::info;
};

}  // namespace calque
