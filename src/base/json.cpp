#include "calque/base/json.h"

#include "calque/base/error.h"

namespace calque {

nlohmann::json parse_json(std::string_view text, const std::string& name) {
  constexpr int max_depth = 100;
  const auto check_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > max_depth)
      throw UserError(fmt::format("{}: nested more than {} levels deep", name, max_depth));
    return true;
  };
  try {
    return nlohmann::json::parse(text, check_depth);
  } catch (const nlohmann::json::exception&) {
    throw UserError(fmt::format("{}: not valid JSON", name), "the file is damaged or of another kind");
  }
}

nlohmann::json parse_json_object(std::string_view text, const std::string& name) {
  nlohmann::json value = parse_json(text, name);
  if (!value.is_object()) throw UserError(fmt::format("{}: expected a JSON object", name));
  return value;
}

}  // namespace calque
