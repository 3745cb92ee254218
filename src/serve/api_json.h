// What the parts of the API share: JSON of translations, forms, and the decode options that a request may
// set.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
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

// The token as each kind of client sends it; empty: there is none.
std::string given_token(const HttpRequest& request);

// A body as JSON, or a form with the same names.
nlohmann::json body_of(const HttpRequest& request);

// Of a member: a list, or a text with commas.
std::vector<std::string> listed(JsonReader& body, const std::string& name);

// Of an OpenAI message: a string, or a list of parts with texts; nothing: neither.
std::optional<std::string> content_text(const nlohmann::json& content);
// "Translate this French text into English: Où est la gare ?" is an instruction, and what is to be
// translated.
std::string without_instruction(const std::string& text);

// Throws unless it is from French, or any language, into English.
void check_languages(const std::string& source, const std::string& target);
std::string lower_ascii(std::string text);

// What a request of any kind asks for.
struct TextOptions {
  bool words = false, scores = false, attention = false;
};

// A part's translation.
std::string part_text(const Translator& translator, const std::string& source, const Hypothesis& part);

// One line's part of an answer: its segments. Attention maps are added as long as `weights_left` lasts, which
// is how many weights the rest of the answer may have.
void add_segments(std::vector<SegmentAnswer>& segments, int64_t line, const Translator& translator,
                  const Translation& translation, const TextOptions& options, size_t& weights_left,
                  const Check& check);

}  // namespace calque
