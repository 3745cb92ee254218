// Config: reads a tree of fields from a YAML file and `section.key=value` overrides. Errors name the file,
// the line and the key. The same tree can be written as commented YAML, as a JSON schema and as a Markdown
// table.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/base/field.h"

namespace calque {

// Reads the file, then the overrides ("train.steps=100"), into the variables that `fields` refers to. Fields
// are read in the order of `fields`, not of the file, so that a key can set the defaults of later keys.
// Relative paths are relative to the file's folder; in an override, to the current folder.
void read_config(const Fields& fields, const std::filesystem::path& file,
                 const std::vector<std::string>& overrides);

// Reads the text of a configuration that a run has saved, possibly with an earlier version of calque. Former
// key names are accepted; unknown keys and invalid values are ignored.
void read_stored_config(const Fields& fields, const std::string& text, const std::string& name,
                        const std::filesystem::path& folder, const std::vector<std::string>& overrides);

// Like read_config, but from text. Messages use `name` as the file name.
void read_config_text(const Fields& fields, const std::string& text, const std::string& name,
                      const std::filesystem::path& folder, const std::vector<std::string>& overrides);

// Commented YAML that reads back to the same values. Paths are written relative to `folder`.
std::string show_config(const Fields& fields, const std::filesystem::path& folder, bool comments = true);

nlohmann::json config_schema(const Fields& fields, const std::string& title);

// A Markdown table of all keys: key, type, default, meaning.
std::string config_table(const Fields& fields);

// The full name and the value of every key, in the order of the listing. Paths are written relative to
// `folder`.
std::vector<std::pair<std::string, std::string>> config_values(const Fields& fields,
                                                               const std::filesystem::path& folder);

// The full names of all keys, for shell completion.
std::vector<std::string> config_keys(const Fields& fields);

}  // namespace calque
