// JsonReader: the members of a request's JSON object, each checked for its type. What is left at the end is
// unknown, and refused. Problems are ApiErrors with status 400 that name the member.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/base/field.h"

namespace calque {

class JsonReader {
 public:
  explicit JsonReader(const std::string& body);
  explicit JsonReader(nlohmann::json object);

  const nlohmann::json& object() const { return object_; }

  // Absent and null are the same.
  const nlohmann::json* take(const std::string& name);
  std::string text(const std::string& name, const std::string& otherwise = "");
  std::string required_text(const std::string& name);
  std::vector<std::string> texts(
      const std::string& name);  // a string or an array of strings; empty where absent
  bool flag(const std::string& name, bool otherwise);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  void fields(const Fields& fields);  // those that are given, by the rules of the configuration
  void ignore(const std::vector<std::string>& names);
  void finish() const;

 private:
  nlohmann::json object_;
  std::vector<std::string> known_;
};

// The fields as properties of a JSON schema, with the types that JSON has.
nlohmann::json schema_properties(const Fields& fields);

}  // namespace calque
