// What the parts of the API share: JSON of translations, forms, and the decode options that a request may
// set.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "answers.h"
#include "calque/decode/translator.h"
#include "calque/serve/api.h"
#include "calque/serve/json_reader.h"

namespace calque {

std::string json_text(const nlohmann::json& value);

// /v1/runs/{name} → "", v1, runs, {name}
std::vector<std::string> parts_of_path(const std::string& path);

// All but `shots`, a file, and `batch`, which the server decides.
Fields request_decode_fields(DecodeConfig& config);

// A form's fields: application/x-www-form-urlencoded or multipart/form-data. A file's name is under
// NAME.filename.
std::map<std::string, std::string> form_fields(const HttpRequest& request);

// A body as JSON, or a form with the same names.
nlohmann::json body_of(const HttpRequest& request);

// Throws unless it is from French, or any language, into English.
void check_languages(const std::string& source, const std::string& target);
std::string lower_ascii(std::string text);

// What a request of any kind asks for.
struct TextOptions {
  bool words = false, scores = false, attention = false;
};

// One line's part of an answer: its segments.
void add_segments(std::vector<SegmentAnswer>& segments, int64_t line, const Translator& translator,
                  const Translation& translation, const TextOptions& options);

}  // namespace calque
