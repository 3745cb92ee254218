// JSON from files that are not trusted: what is no JSON, or is nested so deeply that handling it would
// overflow the stack, is a UserError.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace calque {

// `name` is the file's name in messages.
nlohmann::json parse_json(std::string_view text, const std::string& name);

}  // namespace calque
