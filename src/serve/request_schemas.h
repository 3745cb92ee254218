// RequestSchemas: what the routes take, as JSON schemas. `precisions`: those that the server was started
// with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace calque::request_schemas {

nlohmann::json load_model();
nlohmann::json translate(const std::vector<std::string>& precisions);
nlohmann::json attention(const std::vector<std::string>& precisions);
nlohmann::json alternatives(const std::vector<std::string>& precisions);
nlohmann::json evaluate(const std::vector<std::string>& precisions);
nlohmann::json experiment();
nlohmann::json libretranslate();
nlohmann::json libretranslate_detect();
nlohmann::json libretranslate_file();
nlohmann::json deepl();
nlohmann::json deepl_glossary();
nlohmann::json openai();
// After ?, by name.
nlohmann::json run_query();
nlohmann::json deepl_languages_query();

}  // namespace calque::request_schemas
