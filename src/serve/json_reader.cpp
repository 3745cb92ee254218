#include "calque/serve/json_reader.h"

#include <fmt/format.h>

#include "calque/base/json.h"
#include "calque/base/text.h"
#include "calque/serve/api.h"

namespace calque {

using nlohmann::json;

JsonReader::JsonReader(const std::string& body) {
  try {
    object_ = parse_json(body, "the request's body");
  } catch (const UserError& error) {
    throw ApiError(400, error.what());
  }
  if (!object_.is_object()) throw ApiError(400, "the request's body is not a JSON object");
}

JsonReader::JsonReader(json object) : object_(std::move(object)) {}

const json* JsonReader::take(const std::string& name) {
  known_.push_back(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::string JsonReader::text(const std::string& name, const std::string& otherwise) {
  const json* value = take(name);
  if (!value) return otherwise;
  if (!value->is_string()) throw ApiError(400, name + ": expected a string", name);
  return value->get<std::string>();
}

std::string JsonReader::required_text(const std::string& name) {
  const json* value = take(name);
  if (!value) throw ApiError(400, name + " is missing", name);
  return text(name);
}

std::vector<std::string> JsonReader::texts(const std::string& name) {
  const json* value = take(name);
  if (!value) return {};
  if (value->is_string()) return {value->get<std::string>()};
  std::vector<std::string> all;
  if (!value->is_array()) throw ApiError(400, name + ": expected a string or an array of strings", name);
  for (const json& one : *value) {
    if (!one.is_string()) throw ApiError(400, name + ": expected a string or an array of strings", name);
    all.push_back(one.get<std::string>());
  }
  return all;
}

bool JsonReader::flag(const std::string& name, bool otherwise) {
  const json* value = take(name);
  if (!value) return otherwise;
  if (!value->is_boolean()) throw ApiError(400, name + ": expected true or false", name);
  return value->get<bool>();
}

std::optional<int64_t> JsonReader::integer(const std::string& name, int64_t low, int64_t high) {
  const json* value = take(name);
  if (!value) return std::nullopt;
  if (!value->is_number_integer() || *value < low || *value > high)
    throw ApiError(400, fmt::format("{}: expected an integer from {} to {}", name, low, high), name);
  return value->get<int64_t>();
}

void JsonReader::fields(const Fields& fields) {
  for (const Field& field : fields) {
    const json* value = take(field.name);
    if (!value) continue;
    const bool is_flag = field.schema.value("type", json()) == "boolean";
    if (is_flag ? !value->is_boolean() : !value->is_number())
      throw ApiError(400, fmt::format("{}: expected {}", field.name, is_flag ? "true or false" : field.type),
                     field.name);
    try {
      field.read(YAML::Node(value->dump()), {});
    } catch (const BadValue& error) {
      throw ApiError(400, field.name + ": " + error.what(), field.name);
    }
  }
}

void JsonReader::ignore(const std::vector<std::string>& names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void JsonReader::finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end())
      throw ApiError(400, fmt::format("{}: no such field{}", shorten(name, 60), did_you_mean(name, known_)),
                     shorten(name, 60));
  }
}

json schema_properties(const Fields& fields) {
  json properties = json::object();
  for (const Field& field : fields) {
    json schema = field.schema.contains("anyOf") ? field.schema["anyOf"][0] : field.schema;
    schema["description"] = field.help;
    properties[field.name] = schema;
  }
  return properties;
}

}  // namespace calque
