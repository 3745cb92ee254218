#include "calque/base/field.h"

#include <algorithm>
#include <memory>
#include <set>

#include "calque/base/file.h"
#include "calque/base/units.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string number_text(int64_t value) { return std::to_string(value); }
std::string number_text(double value) { return format_shortest(value); }

std::string scalar(const YAML::Node& node, const char* expected) {
  if (!node.IsScalar()) {
    throw BadValue(fmt::format("expected {}, found {}", expected,
                               node.IsMap()        ? "a mapping"
                               : node.IsSequence() ? "a list"
                                                   : "nothing"));
  }
  return node.Scalar();
}

std::string text_or_empty(const YAML::Node& node, const char* expected) {
  return node.IsNull() ? "" : scalar(node, expected);
}

YAML::Node text_node(const std::string& text) { return text.empty() ? YAML::Node() : YAML::Node(text); }

// The path relative to `folder`, so that a configuration can be moved together with its data.
std::string written_path(const fs::path& path, const fs::path& folder) {
  if (path.empty() || folder.empty()) return path.string();
  const fs::path relative =
      fs::absolute(path).lexically_normal().lexically_proximate(fs::absolute(folder).lexically_normal());
  return relative.string();
}

json text_schema(const std::string& help) { return {{"type", {"string", "null"}}, {"description", help}}; }

}  // namespace

template <class T>
void Range<T>::check(const T& value) const {
  if (low && (low_is_open ? value <= *low : value < *low)) {
    throw BadValue(fmt::format("{} is too small: it must be {}{}", number_text(value),
                               low_is_open ? "above " : "at least ", number_text(*low)));
  }
  if (high && (high_is_open ? value >= *high : value > *high)) {
    throw BadValue(fmt::format("{} is too large: it must be {}{}", number_text(value),
                               high_is_open ? "below " : "at most ", number_text(*high)));
  }
}

template <class T>
std::string Range<T>::text() const {
  std::string text;
  if (low) text += (low_is_open ? ", above " : ", at least ") + number_text(*low);
  if (high) text += (high_is_open ? ", below " : ", at most ") + number_text(*high);
  return text;
}

template <class T>
void Range<T>::describe(json& schema) const {
  if (low) schema[low_is_open ? "exclusiveMinimum" : "minimum"] = *low;
  if (high) schema[high_is_open ? "exclusiveMaximum" : "maximum"] = *high;
}

template struct Range<int64_t>;
template struct Range<double>;

Field field(std::string name, bool& value, std::string help) {
  return {std::move(name),
          "true or false",
          help,
          {{"type", "boolean"}, {"description", help}},
          [&value](const YAML::Node& node, const fs::path&) {
            const std::string text = scalar(node, "true or false");
            if (!YAML::convert<bool>::decode(node, value)) {
              throw BadValue(fmt::format("\"{}\" is neither true nor false", text));
            }
          },
          [&value](const fs::path&) { return YAML::Node(value); },
          {},
          false,
          {}};
}

namespace {

int64_t read_integer(const YAML::Node& node, const Range<int64_t>& range) {
  const std::string text = scalar(node, "an integer");
  const auto count = parse_count(text);
  if (!count) throw BadValue(fmt::format("\"{}\" is not an integer (examples: 4096, 4k, 1.5M)", text));
  range.check(*count);
  return *count;
}

}  // namespace

Field field(std::string name, int64_t& value, Range<int64_t> range, std::string help) {
  json number = {{"type", "integer"}};
  range.describe(number);
  const json schema = {{"anyOf", {number, {{"type", "string"}, {"pattern", "^[0-9_,.]+[kKMG]?$"}}}},
                       {"description", help}};
  return {std::move(name),
          "integer" + range.text(),
          help,
          schema,
          [&value, range](const YAML::Node& node, const fs::path&) { value = read_integer(node, range); },
          [&value](const fs::path&) { return YAML::Node(value); },
          {},
          false,
          {}};
}

Field field(std::string name, double& value, Range<double> range, std::string help) {
  json schema = {{"type", "number"}, {"description", help}};
  range.describe(schema);
  return {std::move(name),
          "number" + range.text(),
          help,
          schema,
          [&value, range](const YAML::Node& node, const fs::path&) {
            const std::string text = scalar(node, "a number");
            const auto number = parse_number(text);
            if (!number) throw BadValue(fmt::format("\"{}\" is not a number", text));
            range.check(*number);
            value = *number;
          },
          [&value](const fs::path&) { return YAML::Node(format_shortest(value)); },
          {},
          false,
          {}};
}

Field field(std::string name, Minutes& value, std::string help) {
  const json schema = {
      {"anyOf", {{{"type", "number"}, {"minimum", 0}}, {{"type", "string"}, {"pattern", "^[0-9.]+[smhd]$"}}}},
      {"description", help}};
  return {std::move(name),
          "minutes, or a duration with a unit: 90s, 20m, 3h, 1d",
          help,
          schema,
          [&value](const YAML::Node& node, const fs::path&) {
            const std::string text = scalar(node, "a duration");
            const auto seconds = parse_seconds(text, 60);
            if (!seconds || *seconds < 0) {
              throw BadValue(fmt::format("\"{}\" is not a duration (examples: 20, 20m, 90s, 3h)", text));
            }
            value.value = *seconds / 60;
          },
          [&value](const fs::path&) { return YAML::Node(format_shortest(value.value)); },
          {},
          false,
          {}};
}

Field field(std::string name, std::string& value, std::string help) {
  return {std::move(name),
          "string",
          help,
          text_schema(help),
          [&value](const YAML::Node& node, const fs::path&) { value = text_or_empty(node, "a string"); },
          [&value](const fs::path&) { return text_node(value); },
          {},
          true,
          {}};
}

Field field(std::string name, fs::path& value, std::string help) {
  return {std::move(name),
          "path",
          help,
          text_schema(help),
          [&value](const YAML::Node& node, const fs::path& folder) {
            value = resolve(text_or_empty(node, "a path"), folder);
          },
          [&value](const fs::path& folder) { return text_node(written_path(value, folder)); },
          {},
          true,
          {}};
}

Field field(std::string name, std::vector<std::string>& value, std::string help) {
  const json schema = {
      {"anyOf",
       {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}, {{"type", "null"}}}},
      {"description", help}};
  return {std::move(name),
          "string or list of strings",
          help,
          schema,
          [&value](const YAML::Node& node, const fs::path&) {
            value.clear();
            if (node.IsNull()) return;
            if (!node.IsSequence()) {
              value.push_back(scalar(node, "a string or a list"));
              return;
            }
            for (const auto& item : node) value.push_back(scalar(item, "a string"));
          },
          [&value](const fs::path&) {
            YAML::Node node(YAML::NodeType::Sequence);
            for (const std::string& item : value) node.push_back(item);
            return node;
          },
          {},
          false,
          {}};
}

Field field(std::string name, std::vector<int64_t>& value, Range<int64_t> range, std::string help) {
  json item = {{"type", "integer"}};
  range.describe(item);
  const json schema = {{"type", "array"}, {"items", item}, {"description", help}};
  return {std::move(name),
          "list of integers" + range.text(),
          help,
          schema,
          [&value, range](const YAML::Node& node, const fs::path&) {
            if (!node.IsSequence()) throw BadValue("expected a list of integers, such as [1, 2]");
            value.clear();
            for (const auto& one : node) value.push_back(read_integer(one, range));
          },
          [&value](const fs::path&) {
            YAML::Node node(YAML::NodeType::Sequence);
            for (const int64_t one : value) node.push_back(one);
            return node;
          },
          {},
          false,
          {}};
}

namespace {

size_t index_of(const std::vector<std::string>& names, const YAML::Node& node) {
  const std::string text = scalar(node, "a name");
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    throw BadValue(
        fmt::format("\"{}\" is not one of: {}{}", text, join(names, ", "), did_you_mean(text, names)));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

Field choice_field(std::string name, std::vector<std::string> names, std::function<size_t()> get,
                   std::function<void(size_t)> set, std::string help) {
  const json schema = {{"enum", names}, {"description", help}};
  return {std::move(name),
          join(names, " or "),
          help,
          schema,
          [names, set](const YAML::Node& node, const fs::path&) { set(index_of(names, node)); },
          [names, get](const fs::path&) { return YAML::Node(names[get()]); },
          {},
          false,
          {}};
}

Field choices_field(std::string name, std::vector<std::string> names,
                    std::function<std::vector<size_t>()> get, std::function<void(std::vector<size_t>)> set,
                    std::string help) {
  const json item = {{"enum", names}};
  const json schema = {{"anyOf", {item, {{"type", "array"}, {"items", item}}, {{"type", "null"}}}},
                       {"description", help}};
  return {std::move(name),
          "list of " + join(names, " or "),
          help,
          schema,
          [names, set](const YAML::Node& node, const fs::path&) {
            std::vector<size_t> all;
            if (node.IsSequence()) {
              for (const auto& one : node) all.push_back(index_of(names, one));
            } else if (!node.IsNull()) {
              all.push_back(index_of(names, node));
            }
            set(all);
          },
          [names, get](const fs::path&) {
            YAML::Node list(YAML::NodeType::Sequence);
            for (const size_t one : get()) list.push_back(names[one]);
            return list;
          },
          {},
          false,
          {}};
}

Field section(std::string name, Fields children, std::string help) {
  return {std::move(name), "section", std::move(help), {}, {}, {}, std::move(children), false, {}};
}

namespace {

// Adds the line of the item to the message; the caller adds only the line of the list.
[[noreturn]] void refuse_item(const YAML::Node& node, const std::string& what) {
  throw BadValue(fmt::format("{} (line {})", what, node.Mark().line + 1));
}

void read_item(const YAML::Node& node, const fs::path& folder, const std::string& shorthand,
               const Fields& item) {
  const auto find = [&](const std::string& name) {
    for (const Field& one : item) {
      if (one.name == name) return &one;
    }
    std::vector<std::string> names;
    for (const Field& one : item) names.push_back(one.name);
    refuse_item(node, fmt::format("{}: no such key{}; the known keys are {}", name, did_you_mean(name, names),
                                  join(names, ", ")));
  };
  if (node.IsScalar()) return find(shorthand)->read(node, folder);
  if (!node.IsMap()) refuse_item(node, "expected a path or a mapping");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string name = entry.first.Scalar();
    if (!seen.insert(name).second) refuse_item(entry.first, name + ": duplicate key");
    const Field* key = find(name);
    try {
      key->read(entry.second, folder);
    } catch (const BadValue& error) {
      refuse_item(entry.second, fmt::format("{}: {}", name, error.what()));
    }
  }
}

}  // namespace

Field list_field(std::string name, std::string help, std::string shorthand, Fields item_fields,
                 std::function<void()> clear, std::function<Fields()> append,
                 std::function<std::vector<Fields>()> all_items) {
  json properties = json::object();
  std::vector<std::string> names;
  for (const Field& one : item_fields) {
    properties[one.name] = one.schema;
    names.push_back(one.name);
  }
  const json item = {{"anyOf",
                      {{{"type", "string"}},
                       {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}}}};
  const json schema = {{"anyOf", {item, {{"type", "array"}, {"items", item}}, {{"type", "null"}}}},
                       {"description", help}};
  // The default values of an item's fields: a field with its default value is not written.
  const auto defaults = std::make_shared<std::vector<std::string>>();
  for (const Field& one : item_fields) defaults->push_back(YAML::Dump(one.write({})));
  return {std::move(name),
          "path, {" + join(names, ", ") + "}, or a list of these",
          help,
          schema,
          [=](const YAML::Node& node, const fs::path& folder) {
            clear();
            if (node.IsNull()) return;
            if (!node.IsSequence()) return read_item(node, folder, shorthand, append());
            for (const auto& one : node) read_item(one, folder, shorthand, append());
          },
          [=](const fs::path& folder) {
            YAML::Node list(YAML::NodeType::Sequence);
            for (const Fields& one : all_items()) {
              YAML::Node mapping(YAML::NodeType::Map);
              for (size_t i = 0; i < one.size(); ++i) {
                if (YAML::Dump(one[i].write({})) != (*defaults)[i])
                  mapping[one[i].name] = one[i].write(folder);
              }
              const bool short_form = mapping.size() == 1 && mapping[shorthand];
              list.push_back(short_form ? YAML::Clone(mapping[shorthand]) : mapping);
            }
            if (list.size() == 0) return YAML::Node();
            return list.size() == 1 ? YAML::Clone(list[0]) : list;
          },
          {},
          false,
          {}};
}

}  // namespace calque
