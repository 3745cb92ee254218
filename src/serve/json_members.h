// JsonMembers: the members of a result, listed once. Its JSON and the schema of that JSON both come from the
// list:
//
//   struct Detection { std::string language; std::optional<double> confidence = {}; };
//
//   template <class Visitor>
//   void members(const Detection& one, Visitor& visit) {
//     visit("language", one.language);
//     visit("confidence", one.confidence, "from 0 to 100");
//   }
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "calque/base/field.h"

namespace calque {

// Null where there is no value. A member that is an std::optional is left out instead.
template <class T>
struct Nullable {
  std::optional<T> value = {};
};

// An object whose members are not known beforehand.
struct AnyMembers {
  nlohmann::json object = nlohmann::json::object();
};

// How a value of a type is written, and the schema of that.
template <class T>
struct JsonType;

struct MembersToJson {
  nlohmann::json object = nlohmann::json::object();

  template <class T>
  void operator()(const char* name, const T& value, const char* = "") {
    object[name] = JsonType<T>::value(value);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value, const char* = "") {
    if (value) object[name] = JsonType<T>::value(*value);
  }
};

struct MembersToSchema {
  nlohmann::json properties = nlohmann::json::object();
  nlohmann::json required = nlohmann::json::array();

  template <class T>
  void operator()(const char* name, const T&, const char* help = "") {
    add(name, JsonType<T>::schema(), help);
    required.push_back(name);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>&, const char* help = "") {
    add(name, JsonType<T>::schema(), help);
  }

 private:
  void add(const char* name, nlohmann::json schema, const std::string& help) {
    if (!help.empty()) schema["description"] = help;
    properties[name] = std::move(schema);
  }
};

inline nlohmann::json schema_of_type(const char* type) {
  nlohmann::json schema;
  schema["type"] = type;
  return schema;
}

// Of a plain value, or a struct with members().
template <class T>
struct JsonType {
  static nlohmann::json value(const T& given) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(name_of(given));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return given;
    } else {
      MembersToJson visitor;
      members(given, visitor);
      return std::move(visitor.object);
    }
  }
  static nlohmann::json schema() {
    if constexpr (std::is_enum_v<T>) {
      nlohmann::json names = schema_of_type("string");
      for (const std::string_view name : EnumNames<T>::names) names["enum"].push_back(std::string(name));
      return names;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return schema_of_type("string");
    } else if constexpr (std::is_same_v<T, bool>) {
      return schema_of_type("boolean");
    } else if constexpr (std::is_arithmetic_v<T>) {
      return schema_of_type(std::is_integral_v<T> ? "integer" : "number");
    } else {
      MembersToSchema visitor;
      members(T{}, visitor);
      nlohmann::json object = schema_of_type("object");
      object["properties"] = std::move(visitor.properties);
      object["required"] = std::move(visitor.required);
      object["additionalProperties"] = false;
      return object;
    }
  }
};

template <class T>
struct JsonType<std::vector<T>> {
  static nlohmann::json value(const std::vector<T>& given) {
    nlohmann::json all = nlohmann::json::array();
    for (const T& one : given) all.push_back(JsonType<T>::value(one));
    return all;
  }
  static nlohmann::json schema() {
    nlohmann::json array = schema_of_type("array");
    array["items"] = JsonType<T>::schema();
    return array;
  }
};

template <class T>
struct JsonType<Nullable<T>> {
  static nlohmann::json value(const Nullable<T>& given) {
    return given.value ? JsonType<T>::value(*given.value) : nlohmann::json();
  }
  static nlohmann::json schema() {
    nlohmann::json either = JsonType<T>::schema();
    const nlohmann::json type = either["type"];
    either["type"] = nlohmann::json::array({type, "null"});
    return either;
  }
};

template <class... T>
struct JsonType<std::variant<T...>> {
  static nlohmann::json value(const std::variant<T...>& given) {
    return std::visit([](const auto& one) { return JsonType<std::decay_t<decltype(one)>>::value(one); },
                      given);
  }
  static nlohmann::json schema() {
    nlohmann::json either;
    (either["anyOf"].push_back(JsonType<T>::schema()), ...);
    return either;
  }
};

template <>
struct JsonType<AnyMembers> {
  static nlohmann::json value(const AnyMembers& given) { return given.object; }
  static nlohmann::json schema() { return schema_of_type("object"); }
};

template <class T>
nlohmann::json json_of(const T& result) {
  return JsonType<T>::value(result);
}

template <class T>
nlohmann::json schema_of() {
  return JsonType<T>::schema();
}

}  // namespace calque
