#include "calque/base/config.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "calque/base/file.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const Field* find(const Fields& fields, const std::string& name) {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::vector<std::string> names_of(const Fields& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

bool has_former_name(const Field& field, const std::string& name) {
  return std::find(field.former_names.begin(), field.former_names.end(), name) != field.former_names.end();
}

// Names that other tools use for the same thing.
std::string usual_name(const std::string& name) {
  const std::map<std::string, std::string> names = {
      {"lr", "learning_rate"},      {"max_steps", "steps"},     {"batch_size", "batch_tokens"},
      {"vocab_size", "vocabulary"}, {"d_model", "hidden_size"}, {"num_layers", "layers"},
      {"beam_size", "beam"},        {"warmup", "warmup_steps"}};
  const auto found = names.find(name);
  return found != names.end() ? found->second : name;
}

// The message for an unknown key. It suggests the new name of a renamed key, the same key in another section
// (`steps` belongs in train), or the most similar key of this section.
std::string no_such_key(const Fields& all, const Fields& here, const std::string& prefix,
                        const std::string& name) {
  if (const std::string usual = usual_name(name); find(here, usual) != nullptr)
    return fmt::format("{}{}: no such key; did you mean {}{}?", prefix, name, prefix, usual);
  for (const Field& field : here) {
    if (has_former_name(field, name))
      return fmt::format("{}{} was renamed: use {}{}", prefix, name, prefix, field.name);
  }
  for (const std::string& key : config_keys(all)) {
    if (key.ends_with("." + name))
      return fmt::format("{}{}: no such key; did you mean {}?", prefix, name, key);
  }
  if (const auto meant = nearest(name, names_of(here))) {
    return fmt::format("{}{}: no such key; did you mean {}{}?", prefix, name, prefix, *meant);
  }
  return fmt::format("{}{}: no such key; the known keys are {}", prefix, name, join(names_of(here), ", "));
}

class Reader {
 public:
  Reader(const Fields& fields, std::string file, fs::path folder, bool stored)
      : fields_(fields), file_(std::move(file)), folder_(std::move(folder)), stored_(stored) {}

  // Kept beside the file's tree: an alias in it would pass a changed value on to every place that refers to
  // it.
  void add_override(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError(fmt::format("command line: {}: expected section.key=value", text),
                      "for example train.steps=1000; `calque config keys` lists the keys");
    }
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    const Fields* here = &fields_;
    std::string prefix;
    std::istringstream parts(key);
    for (std::string part; std::getline(parts, part, '.');) {
      const Field* field = find(*here, part);
      if (field == nullptr) throw UserError("command line: " + no_such_key(fields_, *here, prefix, part));
      prefix += part + ".";
      if (field->children.empty()) {
        if (prefix.size() != key.size() + 1)
          throw UserError(fmt::format("command line: {}: {} is not a section", key, part));
        overrides_[key] = override_value(*field, key, value);
        return;
      }
      here = &field->children;
    }
    throw UserError(fmt::format("command line: {} is a section; set one of its keys: {}", key,
                                join(names_of(*here), ", ")));
  }

  void read(const YAML::Node& node) const { read_section(fields_, node, ""); }

 private:
  // A string is taken as it is: "French: {source}" would be a mapping.
  static YAML::Node override_value(const Field& field, const std::string& key, const std::string& text) {
    if (field.is_string && !text.empty()) return YAML::Node(text);
    try {
      return YAML::Load(text);
    } catch (const YAML::Exception& error) {
      throw UserError(fmt::format("command line: {}: {}", key, error.msg));
    }
  }

  std::string place(const YAML::Node& node) const {
    return node.Mark().line >= 0 ? fmt::format("{}:{}", file_, node.Mark().line + 1) : file_;
  }

  void check_names(const Fields& fields, const YAML::Node& node, const std::string& prefix) const {
    if (!node.IsMap()) {
      throw UserError(fmt::format("{}: {}expected a mapping (key: value)", place(node),
                                  prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": "));
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (find(fields, name) == nullptr && !stored_)
        throw UserError(
            fmt::format("{}: {}", place(entry.first), no_such_key(fields_, fields, prefix, name)));
      if (!seen.insert(name).second)
        throw UserError(fmt::format("{}: {}{}: duplicate key", place(entry.first), prefix, name));
    }
  }

  void read_section(const Fields& fields, const YAML::Node& node, const std::string& prefix) const {
    const bool given = node.IsDefined() && !node.IsNull();
    if (given) check_names(fields, node, prefix);
    for (const Field& field : fields) {
      const std::string key = prefix + field.name;
      const YAML::Node value =
          given ? node[stored_ ? name_in(node, field) : field.name] : YAML::Node(YAML::NodeType::Undefined);
      if (!field.children.empty()) {
        read_section(field.children, value, key + ".");
        continue;
      }
      const auto found = overrides_.find(key);
      if (found == overrides_.end() && !value.IsDefined()) continue;
      try {
        found != overrides_.end() ? field.read(found->second, {}) : field.read(value, folder_);
      } catch (const BadValue& error) {
        if (found == overrides_.end() && stored_)
          continue;  // no longer valid in this version: keep the default
        throw UserError(fmt::format("{}: {}: {}", found != overrides_.end() ? "command line" : place(value),
                                    key, error.what()),
                        error.help());
      }
    }
  }

  // The name of the field in a stored configuration: the current name or a former one.
  static std::string name_in(const YAML::Node& node, const Field& field) {
    if (node[field.name].IsDefined()) return field.name;
    for (const std::string& former : field.former_names) {
      if (node[former].IsDefined()) return former;
    }
    return field.name;
  }

  const Fields& fields_;
  std::string file_;
  fs::path folder_;
  bool stored_;  // saved by a run, possibly with an earlier version
  std::map<std::string, YAML::Node> overrides_;
};

// The value on one line, quoted if YAML requires it.
std::string flow(const YAML::Node& node) {
  YAML::Emitter emitter;
  emitter.SetSeqFormat(YAML::Flow);
  emitter.SetMapFormat(YAML::Flow);
  emitter << node;
  return emitter.c_str();
}

void show(const Fields& fields, const fs::path& folder, bool comments, const std::string& indent,
          std::string& out) {
  size_t widest = 0;
  for (const Field& field : fields) {
    if (field.children.empty())
      widest = std::max(widest, display_width(field.name + flow(field.write(folder))));
  }
  widest = std::min<size_t>(widest, 44);
  for (const Field& field : fields) {
    if (!field.children.empty()) {
      if (comments) out += fmt::format("\n{}# {}\n", indent, field.help);
      out += fmt::format("{}{}:\n", indent, field.name);
      show(field.children, folder, comments, indent + "  ", out);
      continue;
    }
    const std::string value = flow(field.write(folder));
    const size_t width = display_width(field.name + value);
    out += fmt::format("{}{}: {}", indent, field.name, value);
    if (comments) out += std::string(width < widest ? widest - width : 0, ' ') + "  # " + field.help;
    out += "\n";
  }
}

void add_rows(const Fields& fields, const std::string& prefix, std::string& out) {
  for (const Field& field : fields) {
    if (field.children.empty()) {
      std::string type = field.type;
      for (size_t at = 0; (at = type.find('|', at)) != std::string::npos; at += 2) type.insert(at, "\\");
      const YAML::Node value = field.write({});
      out += fmt::format("| `{}{}` | {} | {} | {} |\n", prefix, field.name, type,
                         value.IsNull() ? "" : "`" + flow(value) + "`", field.help);
    } else {
      out += fmt::format("| **{}{}** | section | | {} |\n", prefix, field.name, field.help);
      add_rows(field.children, prefix + field.name + ".", out);
    }
  }
}

json schema_of(const Fields& fields) {
  json properties = json::object();
  for (const Field& field : fields) {
    if (field.children.empty()) {
      properties[field.name] = field.schema;
      if (const YAML::Node value = field.write({}); value.IsScalar()) {
        const json parsed = json::parse(value.Scalar(), nullptr, false);
        properties[field.name]["default"] = parsed.is_discarded() ? json(value.Scalar()) : parsed;
      }
    } else {
      properties[field.name] = schema_of(field.children);
      properties[field.name]["description"] = field.help;
    }
  }
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

// The first line whose indentation has a tab, counted from 1; 0: none.
int line_indented_by_tab(const std::string& text) {
  std::istringstream lines(text);
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos) return number;
  }
  return 0;
}

void read_text(const Fields& fields, const std::string& text, const std::string& name, const fs::path& folder,
               const std::vector<std::string>& overrides, bool stored) {
  if (const auto bad = find_invalid_utf8(text)) {
    throw UserError(fmt::format("{}: not a YAML file: byte {} is not valid UTF-8", name, *bad));
  }
  if (text.size() > (1 << 20))
    throw UserError(fmt::format("{}: too large for a configuration (over 1 MB)", name));
  Reader reader(fields, name, folder, stored);
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    if (const int line = line_indented_by_tab(text); line > 0) {
      throw UserError(fmt::format("{}:{}: not valid YAML: a tab in the indentation", name, line),
                      "YAML is indented by spaces");
    }
    throw UserError(fmt::format("{}:{}: not valid YAML: {}", name, error.mark.line + 1, error.msg));
  }
  if (root.IsNull()) root = YAML::Node(YAML::NodeType::Map);
  if (!root.IsMap())
    throw UserError(fmt::format("{}: not a configuration: expected a mapping (key: value)", name));
  for (const std::string& one : overrides) reader.add_override(one);
  reader.read(root);
}

}  // namespace

void read_config(const Fields& fields, const fs::path& file, const std::vector<std::string>& overrides) {
  read_config_text(fields, read_file(file), file.string(), file.parent_path(), overrides);
}

void read_stored_config(const Fields& fields, const std::string& text, const std::string& name,
                        const fs::path& folder, const std::vector<std::string>& overrides) {
  read_text(fields, text, name, folder, overrides, /*stored=*/true);
}

void read_config_text(const Fields& fields, const std::string& text, const std::string& name,
                      const fs::path& folder, const std::vector<std::string>& overrides) {
  read_text(fields, text, name, folder, overrides, /*stored=*/false);
}

std::string show_config(const Fields& fields, const fs::path& folder, bool comments) {
  std::string out;
  show(fields, folder, comments, "", out);
  return out;
}

json config_schema(const Fields& fields, const std::string& title) {
  json schema = schema_of(fields);
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = title;
  return schema;
}

std::string config_table(const Fields& fields) {
  std::string out = "| key | type | default | meaning |\n|---|---|---|---|\n";
  add_rows(fields, "", out);
  return out;
}

std::vector<std::pair<std::string, std::string>> config_values(const Fields& fields, const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Field& field : fields) {
    if (field.children.empty()) {
      values.emplace_back(field.name, flow(field.write(folder)));
    } else {
      for (auto& [key, value] : config_values(field.children, folder))
        values.emplace_back(field.name + "." + key, std::move(value));
    }
  }
  return values;
}

std::vector<std::string> config_keys(const Fields& fields) {
  std::vector<std::string> keys;
  for (const Field& field : fields) {
    if (field.children.empty()) {
      keys.push_back(field.name);
    } else {
      for (const std::string& key : config_keys(field.children)) keys.push_back(field.name + "." + key);
    }
  }
  return keys;
}

}  // namespace calque
