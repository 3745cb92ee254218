// UserError: something that a person can put right, a wrong command line, configuration or data file.
// It says what is wrong and where in `what()`, and what to do about it in `help()`. main ends with exit
// code 2.
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

// A failure of the machine (a full disk, a lost file), named with the system's own reason: exit code 1.
class SystemError : public std::runtime_error {
 public:
  SystemError(const std::string& what, int error_number);
};

}  // namespace calque
