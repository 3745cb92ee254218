// SchemaCheck: compares JSON with a schema. It knows the keywords that the server's schemas use; any other
// one counts as a difference, so that nothing is left unchecked.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace calque {

class SchemaCheck {
 public:
  // The document is what `$ref` refers to.
  explicit SchemaCheck(nlohmann::json document = {}) : document_(std::move(document)) {}

  // Where and how the value differs from the schema; empty: it does not.
  std::string difference(const nlohmann::json& value, const nlohmann::json& schema,
                         const std::string& place = "$") const {
    if (schema.contains("$ref")) {
      const nlohmann::json::json_pointer pointer(schema.at("$ref").get<std::string>().substr(1));
      return difference(value, document_.at(pointer), place);
    }
    for (const auto& [keyword, content] : schema.items()) {
      const std::string found = under(keyword, content, value, schema, place);
      if (!found.empty()) return found;
    }
    return "";
  }

 private:
  std::string under(const std::string& keyword, const nlohmann::json& content, const nlohmann::json& value,
                    const nlohmann::json& schema, const std::string& place) const {
    if (keyword == "description") return "";
    if (keyword == "type") return unless(has_type(value, content), place, content, value);
    if (keyword == "enum") return unless(contains(content, value), place, content, value);
    if (keyword == "anyOf" || keyword == "oneOf") {
      const auto matching = std::count_if(content.begin(), content.end(), [&](const nlohmann::json& one) {
        return difference(value, one, place).empty();
      });
      return unless(keyword == "anyOf" ? matching > 0 : matching == 1, place, content, value);
    }
    if (keyword == "items") return in_items(content, value, place);
    if (keyword == "required") {
      for (const nlohmann::json& name : content) {
        if (value.is_object() && !value.contains(name.get<std::string>()))
          return place + ": " + name.get<std::string>() + " is missing";
      }
      return "";
    }
    if (keyword == "properties") return in_members(content, value, place);
    if (keyword == "additionalProperties" && content == false) return in_others(schema, value, place);
    return place + ": unknown keyword " + keyword;
  }

  std::string in_items(const nlohmann::json& schema, const nlohmann::json& value,
                       const std::string& place) const {
    if (!value.is_array()) return "";
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string found = difference(value[i], schema, place + "[" + std::to_string(i) + "]");
      if (!found.empty()) return found;
    }
    return "";
  }

  std::string in_members(const nlohmann::json& schemas, const nlohmann::json& value,
                         const std::string& place) const {
    if (!value.is_object()) return "";
    for (const auto& [name, schema] : schemas.items()) {
      if (!value.contains(name)) continue;
      const std::string found = difference(value.at(name), schema, place + "." + name);
      if (!found.empty()) return found;
    }
    return "";
  }

  static std::string in_others(const nlohmann::json& schema, const nlohmann::json& value,
                               const std::string& place) {
    if (!value.is_object()) return "";
    for (const auto& [name, member] : value.items()) {
      if (!schema.contains("properties") || !schema.at("properties").contains(name))
        return place + ": " + name + " = " + member.dump() + " is not in the schema";
    }
    return "";
  }

  static std::string unless(bool fits, const std::string& place, const nlohmann::json& expected,
                            const nlohmann::json& value) {
    return fits ? "" : place + ": expected " + expected.dump() + ", found " + value.dump();
  }

  static bool contains(const nlohmann::json& list, const nlohmann::json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  static bool has_type(const nlohmann::json& value, const nlohmann::json& type) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(),
                         [&](const nlohmann::json& one) { return has_type(value, one); });
    return type == "integer" ? value.is_number_integer() : type == value.type_name();
  }

  nlohmann::json document_;
};

}  // namespace calque
