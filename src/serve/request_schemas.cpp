#include "request_schemas.h"

#include "api_json.h"
#include "calque/base/field.h"

namespace calque::request_schemas {

using nlohmann::json;

namespace {

json property(const char* type, const char* description = "") {
  return {{"type", type}, {"description", description}};
}

json object(const std::vector<std::string>& required, const json& properties) {
  return {{"type", "object"}, {"required", required}, {"properties", properties}};
}

// Of a route that refuses what it does not know.
json closed(json schema) {
  schema["additionalProperties"] = false;
  return schema;
}

json one_of(const std::vector<std::string>& names) { return {{"enum", names}}; }

json one_text_or_several() {
  return {{"oneOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
}

// Adds what every route takes that asks for a model.
json with_model(json schema, const std::vector<std::string>& precisions) {
  json& properties = schema["properties"];
  properties["model"] = property("string", "a model of /v1/models; the first where there is none");
  properties["precision"] = one_of(precisions);
  properties["precision"]["description"] = "of the weights; the first where there is none";
  return schema;
}

}  // namespace

json load_model() {
  return closed(object({"model"}, {{"model", property("string", "a run or a checkpoint")}}));
}

json translate(const std::vector<std::string>& precisions) {
  DecodeConfig decode;
  json properties = schema_properties(request_decode_fields(decode));
  for (const char* limited : {"beam", "nbest"}) properties[limited]["maximum"] = ApiOptions().max_beam;
  properties["text"] = one_text_or_several();
  properties["text"]["description"] = "what to translate; lines are translated one by one";
  properties["prefix"] = property("string", "what the first line's translation must begin with");
  properties["glossary"] = {{"type", "object"},
                            {"additionalProperties", {{"type", "string"}}},
                            {"description", "French terms and how they are to be translated"}};
  properties["format"] = one_of({"text", "html", "xml"});
  properties["format"]["description"] = "of the text; tags keep their places";
  properties["stream"] = property("boolean", "answer with server-sent events while it is made");
  properties["words"] = property("boolean", "the words with their probabilities");
  properties["scores"] = property("boolean", "the tokens with their log-probabilities");
  properties["attention"] = property("boolean", "how much each word attended to each source word");
  return closed(with_model(object({"text"}, properties), precisions));
}

json attention(const std::vector<std::string>& precisions) {
  const json text = property("string"), index = property("integer", "missing: the mean over all");
  return closed(with_model(
      object({"source", "target"}, {{"source", text}, {"target", text}, {"layer", index}, {"head", index}}),
      precisions));
}

json alternatives(const std::vector<std::string>& precisions) {
  return closed(with_model(object({"source"}, {{"source", property("string")},
                                               {"prefix", property("string", "the translation so far")},
                                               {"count", property("integer", "of tokens, from 1 to 50")}}),
                           precisions));
}

json evaluate(const std::vector<std::string>& precisions) {
  const json texts = one_text_or_several();
  return closed(with_model(
      object({"reference"}, {{"source", texts}, {"reference", texts}, {"hypothesis", texts}}), precisions));
}

json experiment() {
  return closed(object({}, {{"parameters", {{"type", "object"}}}, {"model", property("string")}}));
}

json libretranslate() {
  return object({"q"}, {{"q", one_text_or_several()},
                        {"source", one_of({"auto", "fr"})},
                        {"target", one_of({"en"})},
                        {"format", one_of({"text", "html"})},
                        {"alternatives", {{"type", "integer"}, {"minimum", 0}, {"maximum", 20}}},
                        {"api_key", property("string")}});
}

json libretranslate_detect() {
  return object({"q"}, {{"q", property("string")}, {"api_key", property("string")}});
}

json libretranslate_file() {
  json file = property("string", "a text (.txt) or a page (.html)");
  file["format"] = "binary";
  return object({"file"}, {{"file", file},
                           {"source", one_of({"auto", "fr"})},
                           {"target", one_of({"en"})},
                           {"model", property("string", "default: the first")},
                           {"api_key", property("string")}});
}

json deepl() {
  const json texts = one_text_or_several(), id = property("string");
  return object({"text", "target_lang"}, {{"text", texts},
                                          {"source_lang", one_of({"FR"})},
                                          {"target_lang", one_of({"EN", "EN-GB", "EN-US"})},
                                          {"context", property("string", "is ignored")},
                                          {"split_sentences", one_of({"0", "1", "nonewlines"})},
                                          {"tag_handling", one_of({"html", "xml"})},
                                          {"splitting_tags", texts},
                                          {"ignore_tags", texts},
                                          {"glossary_id", id},
                                          {"glossary_ids", texts}});
}

json deepl_glossary() {
  return object({"name", "entries"}, {{"name", property("string")},
                                      {"source_lang", one_of({"fr"})},
                                      {"target_lang", one_of({"en"})},
                                      {"entries", property("string", "a term per line")},
                                      {"entries_format", one_of({"tsv", "csv"})}});
}

json openai() {
  const json text = property("string");
  json parts = property("array");
  parts["minItems"] = 1;
  parts["items"] = object({"text"}, {{"text", text}});
  json content;
  content["oneOf"] = json::array({text, parts});
  const json message =
      object({"role", "content"}, {{"role", one_of({"system", "user", "assistant"})}, {"content", content}});
  json messages = property("array");
  messages["minItems"] = 1;
  messages["items"] = message;
  return object({"messages"}, {{"model", text}, {"messages", messages}, {"stream", property("boolean")}});
}

json run_query() { return {{"after", property("integer", "only metrics of later steps")}}; }

json deepl_languages_query() { return {{"type", one_of({"source", "target"})}}; }

}  // namespace calque::request_schemas
