// Field: one key of a configuration struct. Each struct lists its fields once, in a function fields().
// Reading, checking, overriding, printing, the JSON schema, shell completion and the docs all use that list.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {

// Says why a value is invalid. The configuration reader adds the file, the line and the key.
struct BadValue : UserError {
  using UserError::UserError;
};

struct Field;
using Fields = std::vector<Field>;

// Example of a list of fields:
//
//   Fields fields(TrainConfig& c) {
//     return {field("steps", c.steps, at_least(0), "optimizer updates; 0: no limit"), …};
//   }
struct Field {
  std::string name;
  std::string type;  // as shown to people: "integer, at least 1"
  std::string help;
  nlohmann::json schema;
  // Reads the value from YAML; relative paths are relative to `folder`.
  std::function<void(const YAML::Node&, const std::filesystem::path& folder)> read;
  // Returns the value as YAML; paths are written relative to `folder`.
  std::function<YAML::Node(const std::filesystem::path& folder)> write;
  Fields children;                             // of a section; empty for a plain value
  bool is_string = false;                      // any text is a value
  std::vector<std::string> former_names = {};  // its names in earlier versions

  Field formerly(const std::string& old_name) const {
    Field renamed = *this;
    renamed.former_names.push_back(old_name);
    return renamed;
  }
};

// A duration. A plain number is in minutes; 90s, 20m, 3h and 1d have a unit.
struct Minutes {
  double value = 0;
  bool operator==(const Minutes&) const = default;
};

// The names of an enum's values, in order. Specialise it for each enum that is used in a configuration.
template <class Enum>
struct EnumNames;

template <class Enum>
std::string_view name_of(Enum value) {
  return EnumNames<Enum>::names[static_cast<size_t>(value)];
}

template <class T>
struct Range {
  std::optional<T> low{};
  std::optional<T> high{};
  bool low_is_open = false;
  bool high_is_open = false;

  void check(const T& value) const;
  std::string text() const;                     // ", at least 1"
  void describe(nlohmann::json& schema) const;  // adds minimum and maximum
};

// A range has the type of the literals it is written with (at_least(1), between(0.0, 1.0)) and converts to
// the type of the field.
template <class T>
struct RangeOf {
  Range<T> range;
  template <class U>
  operator Range<U>() const {
    const auto as = [](const std::optional<T>& v) {
      return v ? std::optional<U>(static_cast<U>(*v)) : std::nullopt;
    };
    return {as(range.low), as(range.high), range.low_is_open, range.high_is_open};
  }
};
template <class T>
RangeOf<T> at_least(T low) {
  return {{low}};
}
template <class T>
RangeOf<T> above(T low) {
  return {{low, std::nullopt, true}};
}
template <class T>
RangeOf<T> between(T low, T high) {
  return {{low, high}};
}
template <class T>
RangeOf<T> from_below(T low, T high) {
  return {{low, high, false, true}};
}  // low ≤ value < high
inline RangeOf<double> any_number() { return {}; }

Field field(std::string name, bool& value, std::string help);
Field field(std::string name, int64_t& value, Range<int64_t> range, std::string help);
Field field(std::string name, double& value, Range<double> range, std::string help);
Field field(std::string name, Minutes& value, std::string help);
Field field(std::string name, std::string& value, std::string help);
Field field(std::string name, std::filesystem::path& value, std::string help);
Field field(std::string name, std::vector<std::string>& value, std::string help);
Field field(std::string name, std::vector<int64_t>& value, Range<int64_t> range, std::string help);

// A choice of one name out of several. `set` receives the index of the chosen name.
Field choice_field(std::string name, std::vector<std::string> names, std::function<size_t()> get,
                   std::function<void(size_t)> set, std::string help);

template <class Enum>
Field field(std::string name, Enum& value, std::string help) requires std::is_enum_v<Enum> {
  return choice_field(
      std::move(name), {std::begin(EnumNames<Enum>::names), std::end(EnumNames<Enum>::names)},
      [&value] { return static_cast<size_t>(value); }, [&value](size_t i) { value = static_cast<Enum>(i); },
      std::move(help));
}

// A list of such choices.
Field choices_field(std::string name, std::vector<std::string> names,
                    std::function<std::vector<size_t>()> get, std::function<void(std::vector<size_t>)> set,
                    std::string help);

template <class Enum>
Field list_of_choices(std::string name, std::vector<Enum>& value, std::string help) {
  return choices_field(
      std::move(name), {std::begin(EnumNames<Enum>::names), std::end(EnumNames<Enum>::names)},
      [&value] {
        std::vector<size_t> all;
        for (const Enum one : value) all.push_back(static_cast<size_t>(one));
        return all;
      },
      [&value](const std::vector<size_t>& all) {
        value.clear();
        for (const size_t one : all) value.push_back(static_cast<Enum>(one));
      },
      std::move(help));
}

Field section(std::string name, Fields children, std::string help);

// A list of structs. Each item is a mapping of its fields, or a single path, which sets the field
// `shorthand`. A list of one item may be written without brackets.
Field list_field(std::string name, std::string help, std::string shorthand, Fields item_fields,
                 std::function<void()> clear, std::function<Fields()> append,
                 std::function<std::vector<Fields>()> items);

template <class Item>
Field items(std::string name, std::vector<Item>& value, std::string shorthand, std::string help) {
  static Item sample;
  return list_field(
      std::move(name), std::move(help), std::move(shorthand), fields(sample), [&value] { value.clear(); },
      [&value] { return fields(value.emplace_back()); },
      [&value] {
        std::vector<Fields> all;
        for (Item& item : value) all.push_back(fields(item));
        return all;
      });
}

}  // namespace calque
