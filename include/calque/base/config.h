// Config: a tree of listed fields, read from a YAML file and `section.key=value` overrides, with every
// mistake named by file, line and key; and the other ways round: as commented YAML, as a JSON schema, as a
// table for the docs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/base/field.h"

namespace calque {

// Reads the file, then the overrides («train.steps=100»), into what `fields` refers to. Fields are read in
// the order of the listing, not of the file, so that a key may set what later keys refine. Relative paths
// count from the file's folder, in an override from the current one.
void read_config(const Fields& fields, const std::filesystem::path& file,
                 const std::vector<std::string>& overrides);

// The same from text; `name` stands for the file in messages.
void read_config_text(const Fields& fields, const std::string& text, const std::string& name,
                      const std::filesystem::path& folder, const std::vector<std::string>& overrides);

// Commented YAML that reads back to the same values. Paths are written relative to `folder`.
std::string show_config(const Fields& fields, const std::filesystem::path& folder, bool comments = true);

nlohmann::json config_schema(const Fields& fields, const std::string& title);

// A Markdown table of all keys: key, type, default, meaning.
std::string config_table(const Fields& fields);

// Every key by its full name, for completion.
std::vector<std::string> config_keys(const Fields& fields);

}  // namespace calque
