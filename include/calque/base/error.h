// UserError: an error that the user can fix, in the command line, a configuration or a data file. what() says
// what is wrong and where; help() says what to do. The program exits with code 2.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace calque {

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& what, std::string help = "")
      : std::runtime_error(what), help_(std::move(help)) {}

  const std::string& help() const { return help_; }

 private:
  std::string help_;
};

// A system failure (a full disk, an unreadable file), with the operating system's reason. Exit code 1.
class SystemError : public std::runtime_error {
 public:
  SystemError(const std::string& what, int error_number);
};

}  // namespace calque
