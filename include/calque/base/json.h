// JSON from files that are not trusted: what is no JSON, is nested so deeply that handling it would overflow
// the stack, or has values of the wrong type is a UserError.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "calque/base/error.h"

namespace calque {

// `name` is the file's name in messages.
nlohmann::json parse_json(std::string_view text, const std::string& name);
nlohmann::json parse_json_object(std::string_view text, const std::string& name);

// Calls `read`, which takes values from the JSON of file `name`, and returns its result.
template <class Read>
auto read_json_values(const std::string& name, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();  // "[json.exception.type_error.302] type must be …"
    const size_t bracket = what.find("] ");
    throw UserError(fmt::format("{}: a value is missing or has the wrong type: {}", name,
                                bracket == std::string::npos ? what : what.substr(bracket + 2)));
  }
}

}  // namespace calque
