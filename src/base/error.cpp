#include "calque/base/error.h"

#include <system_error>

namespace calque {

SystemError::SystemError(const std::string& what, int error_number)
    : std::runtime_error(what + ": " + std::generic_category().message(error_number)) {}

}  // namespace calque
