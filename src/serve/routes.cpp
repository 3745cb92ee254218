// The list of routes, and its description for clients (OpenAPI 3.1).
#include <algorithm>

#include "api_json.h"
#include "calque/base/field.h"

namespace calque {

using nlohmann::json;

namespace {

json property(const char* type, const char* description) {
  return {{"type", type}, {"description", description}};
}

json object(const std::vector<std::string>& required, const json& properties) {
  return {{"type", "object"}, {"required", required}, {"properties", properties}};
}

}  // namespace

std::vector<Api::Route> Api::all_routes(const std::vector<std::string>& precisions) {
  DecodeConfig decode;
  json translate = {{"type", "object"}, {"required", {"text"}}, {"additionalProperties", false}};
  translate["properties"] = schema_properties(request_decode_fields(decode));
  for (const char* limited : {"beam", "nbest"})
    translate["properties"][limited]["maximum"] = ApiOptions().max_beam;
  translate["properties"]["text"] = {
      {"description", "what to translate; lines are translated one by one"},
      {"oneOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
  translate["properties"]["model"] =
      property("string", "a model of /v1/models; the first where there is none");
  translate["properties"]["precision"] = {{"enum", precisions},
                                          {"description", "of the weights; the first where there is none"}};
  translate["properties"]["prefix"] = property("string", "what the first line's translation must begin with");
  translate["properties"]["glossary"] = {{"type", "object"},
                                         {"additionalProperties", {{"type", "string"}}},
                                         {"description", "French terms and how they are to be translated"}};
  translate["properties"]["format"] = {{"enum", {"text", "html", "xml"}},
                                       {"description", "of the text; tags keep their places"}};
  translate["properties"]["stream"] = property("boolean", "answer with server-sent events while it is made");
  translate["properties"]["words"] = property("boolean", "the words with their probabilities");
  translate["properties"]["scores"] = property("boolean", "the tokens with their log-probabilities");
  translate["properties"]["attention"] =
      property("boolean", "how much each word attended to each source word");
  const json text = property("string", ""), count = property("integer", ""), flag = property("boolean", "");
  const json texts = {
      {"oneOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
  const json libretranslate =
      object({"q"}, {{"q", texts},
                     {"source", {{"enum", {"auto", "fr"}}}},
                     {"target", {{"enum", {"en"}}}},
                     {"format", {{"enum", {"text", "html"}}}},
                     {"alternatives", {{"type", "integer"}, {"minimum", 0}, {"maximum", 20}}},
                     {"api_key", text}});
  const json deepl =
      object({"text", "target_lang"}, {{"text", texts},
                                       {"source_lang", {{"enum", {"FR"}}}},
                                       {"target_lang", {{"enum", {"EN", "EN-GB", "EN-US"}}}},
                                       {"context", property("string", "is ignored")},
                                       {"split_sentences", {{"enum", {"0", "1", "nonewlines"}}}},
                                       {"tag_handling", {{"enum", {"html", "xml"}}}},
                                       {"splitting_tags", texts},
                                       {"ignore_tags", texts},
                                       {"glossary_id", text}});
  const json glossary = object({"name", "entries"}, {{"name", text},
                                                     {"source_lang", {{"enum", {"fr"}}}},
                                                     {"target_lang", {{"enum", {"en"}}}},
                                                     {"entries", property("string", "a term per line")},
                                                     {"entries_format", {{"enum", {"tsv", "csv"}}}}});
  const json parts = {{"type", "array"}, {"minItems", 1}, {"items", object({"text"}, {{"text", text}})}};
  const json message = object({"role", "content"}, {{"role", {{"enum", {"system", "user", "assistant"}}}},
                                                    {"content", {{"oneOf", {text, parts}}}}});
  const json chat =
      object({"messages"}, {{"model", text},
                            {"messages", {{"type", "array"}, {"minItems", 1}, {"items", message}}},
                            {"stream", flag}});
  return {
      {"GET", "/", "the page", &Api::page, true},
      {"GET", "/v1/health", "ready once a model has answered", &Api::health, true},
      {"GET", "/metrics", "counters for Prometheus", &Api::prometheus},
      {"GET", "/openapi.json", "this list", &Api::openapi, true},
      {"GET", "/v1/models", "the models", &Api::list_models},
      {"POST", "/v1/models", "load another model", &Api::add_model, false, false,
       object({"model"}, {{"model", text}})},
      {"DELETE", "/v1/models/{name}", "remove a model", &Api::remove_model},
      {"POST", "/v1/translate", "translate", &Api::translate, false, false, translate},
      {"POST", "/v1/attention", "the attention of a translation", &Api::attention, false, true,
       object({"source", "target"},
              {{"model", text}, {"source", text}, {"target", text}, {"layer", count}, {"head", count}})},
      {"POST", "/v1/alternatives", "other words at a place of a translation", &Api::alternatives, false, true,
       object({"source"}, {{"model", text}, {"source", text}, {"prefix", text}, {"count", count}})},
      {"POST", "/v1/evaluate", "BLEU, chrF and TER", &Api::evaluate, false, false,
       object({"reference"},
              {{"model", text}, {"source", texts}, {"reference", texts}, {"hypothesis", texts}})},
      {"GET", "/v1/runs", "the runs and comparisons", &Api::list_runs, false, true},
      {"GET", "/v1/runs/{name}", "a run's configuration and metrics", &Api::show_run, false, true},
      {"GET", "/v1/runs/{name}/report", "a run's report", &Api::run_report, false, true},
      {"GET", "/v1/comparisons/{name}", "a comparison's report", &Api::comparison_report, false, true},
      {"GET", "/v1/experiments", "the attention experiments", &Api::list_experiments},
      {"POST", "/v1/experiments/{name}", "run an experiment", &Api::show_experiment, false, true,
       object({}, {{"parameters", {{"type", "object"}}}, {"model", text}})},
      {"POST", "/translate", "as LibreTranslate", &Api::libretranslate, false, false, libretranslate},
      {"GET", "/languages", "as LibreTranslate", &Api::libretranslate_languages, true},
      {"POST", "/detect", "as LibreTranslate", &Api::libretranslate_detect, false, false,
       object({"q"}, {{"q", text}, {"api_key", text}})},
      {"GET", "/frontend/settings", "as LibreTranslate", &Api::libretranslate_settings, true},
      {"POST", "/translate_file", "as LibreTranslate: text files", &Api::libretranslate_file},
      {"GET", "/download_file/{id}/{name}", "a translated file", &Api::libretranslate_download, true},
      {"POST", "/v2/translate", "as DeepL", &Api::deepl, false, false, deepl},
      {"GET", "/v2/languages", "as DeepL", &Api::deepl_languages},
      {"GET", "/v2/usage", "as DeepL", &Api::deepl_usage},
      {"POST", "/v2/glossaries", "as DeepL: add a glossary", &Api::deepl_add_glossary, false, false,
       glossary},
      {"GET", "/v2/glossaries", "as DeepL: the glossaries", &Api::deepl_list_glossaries},
      {"GET", "/v2/glossaries/{id}", "as DeepL: a glossary", &Api::deepl_show_glossary},
      {"GET", "/v2/glossaries/{id}/entries", "as DeepL: its terms", &Api::deepl_glossary_entries},
      {"DELETE", "/v2/glossaries/{id}", "as DeepL: remove a glossary", &Api::deepl_remove_glossary},
      {"POST", "/v1/chat/completions", "as OpenAI: the last message is translated", &Api::openai, false,
       false, chat},
  };
}

void Api::openapi(const Shared& exchange, const Parameters&) {
  json paths = json::object();
  for (const Route& route : routes_) {
    json operation = {
        {"summary", route.summary},
        {"responses", {{"200", {{"description", "done"}}}, {"default", {{"description", "an error"}}}}}};
    if (!route.body.is_null())
      operation["requestBody"] = {{"required", true},
                                  {"content", {{"application/json", {{"schema", route.body}}}}}};
    json parameters = json::array();
    for (const std::string& part : parts_of_path(route.path)) {
      if (part.starts_with('{'))
        parameters.push_back({{"name", part.substr(1, part.size() - 2)},
                              {"in", "path"},
                              {"required", true},
                              {"schema", {{"type", "string"}}}});
    }
    if (!parameters.empty()) operation["parameters"] = parameters;
    if (!route.is_open) operation["security"] = json::array({{{"token", json::array()}}});
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return static_cast<char>(c | 0x20); });
    paths[route.path][method] = operation;
  }
  exchange->respond(
      {200, json_text({{"openapi", "3.1.0"},
                       {"info", {{"title", "calque"}, {"version", "1"}}},
                       {"paths", paths},
                       {"components",
                        {{"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}})});
}

}  // namespace calque
