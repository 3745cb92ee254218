#include "calque/base/config.h"

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

// A key that is not in this section may stand in another: «steps» belongs under train.
std::string no_such_key(const Fields& all, const Fields& here, const std::string& prefix,
                        const std::string& name) {
  for (const std::string& key : config_keys(all)) {
    if (key.ends_with("." + name))
      return fmt::format("{}{}: no such key; did you mean {}?", prefix, name, key);
  }
  if (const auto meant = nearest(name, names_of(here))) {
    return fmt::format("{}{}: no such key; did you mean {}{}?", prefix, name, prefix, *meant);
  }
  return fmt::format("{}{}: no such key; known here: {}", prefix, name, join(names_of(here), ", "));
}

class Reader {
 public:
  Reader(const Fields& fields, std::string file, fs::path folder)
      : fields_(fields), file_(std::move(file)), folder_(std::move(folder)) {}

  void override_with(YAML::Node& root, const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError(fmt::format("command line: {}: section.key=value wanted", text),
                      "for example train.steps=1000; `calque config keys` lists the keys");
    }
    const std::string key = text.substr(0, equals);
    YAML::Node value;
    try {
      value = YAML::Load(text.substr(equals + 1));
    } catch (const YAML::Exception& error) {
      throw UserError(fmt::format("command line: {}: {}", key, error.msg));
    }
    const Fields* here = &fields_;
    YAML::Node node = root;
    std::string prefix;
    std::istringstream parts(key);
    for (std::string part; std::getline(parts, part, '.');) {
      const Field* field = find(*here, part);
      if (field == nullptr) throw UserError("command line: " + no_such_key(fields_, *here, prefix, part));
      prefix += part + ".";
      if (field->children.empty()) {
        if (prefix.size() != key.size() + 1)
          throw UserError(fmt::format("command line: {}: {} is not a section", key, part));
        node[part] = value;
        overridden_.insert(key);
        return;
      }
      if (!node[part].IsDefined() || node[part].IsNull()) node[part] = YAML::Node(YAML::NodeType::Map);
      if (!node[part].IsMap())
        throw UserError(fmt::format("{}: {}: keys and values wanted", place(node[part], ""), part));
      YAML::Node next = node[part];
      node.reset(next);
      here = &field->children;
    }
    throw UserError(
        fmt::format("command line: {} is a section; name a key in it: {}", key, join(names_of(*here), ", ")));
  }

  void read(const YAML::Node& node) const { read_section(fields_, node, ""); }

 private:
  std::string place(const YAML::Node& node, const std::string& key) const {
    if (overridden_.contains(key)) return "command line";
    return node.Mark().line >= 0 ? fmt::format("{}:{}", file_, node.Mark().line + 1) : file_;
  }

  void read_section(const Fields& fields, const YAML::Node& node, const std::string& prefix) const {
    if (!node.IsDefined() || node.IsNull()) return;
    if (!node.IsMap()) {
      throw UserError(fmt::format("{}: {}keys and values wanted", place(node, ""),
                                  prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": "));
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (find(fields, name) == nullptr) {
        throw UserError(
            fmt::format("{}: {}", place(entry.first, ""), no_such_key(fields_, fields, prefix, name)));
      }
      if (!seen.insert(name).second) {
        throw UserError(fmt::format("{}: {}{}: given twice", place(entry.first, ""), prefix, name));
      }
    }
    for (const Field& field : fields) {
      if (!seen.contains(field.name)) continue;
      const YAML::Node value = node[field.name];
      const std::string key = prefix + field.name;
      if (!field.children.empty()) {
        read_section(field.children, value, key + ".");
        continue;
      }
      try {
        field.read(value, overridden_.contains(key) ? fs::path() : folder_);
      } catch (const BadValue& error) {
        throw UserError(fmt::format("{}: {}: {}", place(value, key), key, error.what()), error.help());
      }
    }
  }

  const Fields& fields_;
  std::string file_;
  fs::path folder_;
  std::set<std::string> overridden_;
};

// One value on one line, quoted where YAML needs it.
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

}  // namespace

void read_config(const Fields& fields, const fs::path& file, const std::vector<std::string>& overrides) {
  read_config_text(fields, read_file(file), file.string(), file.parent_path(), overrides);
}

void read_config_text(const Fields& fields, const std::string& text, const std::string& name,
                      const fs::path& folder, const std::vector<std::string>& overrides) {
  if (const auto bad = find_invalid_utf8(text)) {
    throw UserError(fmt::format("{}: not a YAML file: byte {} is not valid UTF-8", name, *bad));
  }
  if (text.size() > (1 << 20))
    throw UserError(fmt::format("{}: too large for a configuration (over 1 MB)", name));
  Reader reader(fields, name, folder);
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw UserError(fmt::format("{}:{}: not valid YAML: {}", name, error.mark.line + 1, error.msg));
  }
  if (root.IsNull()) root = YAML::Node(YAML::NodeType::Map);
  if (!root.IsMap()) throw UserError(fmt::format("{}: not a configuration: keys and values wanted", name));
  for (const std::string& one : overrides) reader.override_with(root, one);
  reader.read(root);
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
