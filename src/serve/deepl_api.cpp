// The routes that DeepL's clients call.
#include <fmt/chrono.h>

#include <sstream>

#include "api_json.h"
#include "calque/base/text.h"
#include "translate_call.h"

namespace calque {

using nlohmann::json;

namespace {

json glossary_json(const StoredGlossary& glossary) {
  return {{"glossary_id", glossary.id},
          {"name", glossary.name},
          {"ready", true},
          {"source_lang", "fr"},
          {"target_lang", "en"},
          {"creation_time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.000000Z", fmt::gmtime(glossary.created))},
          {"entry_count", glossary.terms.size()}};
}

// A list, or a text with commas.
std::set<std::string> tag_names(JsonReader& body, const std::string& name) {
  std::set<std::string> names;
  for (const std::string& given : body.texts(name)) {
    std::istringstream parts(given);
    for (std::string one; std::getline(parts, one, ',');) names.insert(lower_ascii(one));
  }
  return names;
}

StoredGlossary known_glossary(const GlossaryStore& store, const std::string& id) {
  const auto found = store.find(id);
  if (!found) throw ApiError(404, "no such glossary");
  return *found;
}

// Where sentences may go on over line ends, each text is one line.
void join_lines(std::vector<std::string>& texts) {
  for (std::string& text : texts) std::replace(text.begin(), text.end(), '\n', ' ');
}

}  // namespace

void Api::deepl(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  auto call = std::make_shared<TranslateCall>();
  call->texts = body.texts("text");
  if (call->texts.empty()) throw ApiError(400, "text is missing", "text");
  const std::string source = lower_ascii(body.text("source_lang", "auto")),
                    target = lower_ascii(body.text("target_lang"));
  check_languages(source, target.starts_with("en") ? "en" : target);
  const std::string handling = body.text("tag_handling"), split = body.text("split_sentences", "1");
  if (!handling.empty() && handling != "html" && handling != "xml")
    throw ApiError(400, "tag_handling: expected html or xml", "tag_handling");
  if (split != "0" && split != "1" && split != "nonewlines")
    throw ApiError(400, "split_sentences: expected 0, 1 or nonewlines", "split_sentences");
  if (const std::string id = body.text("glossary_id"); !id.empty())
    call->glossary = Glossary(known_glossary(glossaries_, id).terms);
  if (!handling.empty()) {
    call->add_markup({handling == "html", tag_names(body, "splitting_tags"), tag_names(body, "ignore_tags")});
  } else if (split != "1") {
    join_lines(call->texts);
  }
  call->model = ready_model("", "");
  auto decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  decode->split_sentences = split != "0";
  call->decode = decode;
  start(exchange, call, [exchange, call](const std::vector<json>& translations) {
    json all = json::array();
    for (size_t i = 0; i < translations.size(); ++i)
      all.push_back({{"detected_source_language", "FR"},
                     {"text", translations[i]["text"]},
                     {"billed_characters", 0},
                     {"model_type_used", "quality_optimized"}});
    exchange->respond({200, json_text({{"translations", all}})});
  });
}

void Api::deepl_languages(const Shared& exchange, const Parameters&) {
  const auto& query = exchange->request().query;
  const auto type = query.find("type");
  const bool is_target = type != query.end() && type->second == "target";
  const json source = json::array({{{"language", "FR"}, {"name", "French"}}});
  const json target =
      json::array({{{"language", "EN-GB"}, {"name", "English (British)"}, {"supports_formality", false}},
                   {{"language", "EN-US"}, {"name", "English (American)"}, {"supports_formality", false}}});
  exchange->respond({200, json_text(is_target ? target : source)});
}

void Api::deepl_usage(const Shared& exchange, const Parameters&) {
  exchange->respond({200, json_text({{"character_count", 0}, {"character_limit", 1'000'000'000'000}})});
}

void Api::deepl_add_glossary(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  const std::string name = body.required_text("name"), format = body.text("entries_format", "tsv");
  if (lower_ascii(body.text("source_lang", "fr")) != "fr" ||
      !lower_ascii(body.text("target_lang", "en")).starts_with("en"))
    throw ApiError(400, "glossaries are from French (fr) into English (en)", "source_lang");
  if (format != "tsv" && format != "csv")
    throw ApiError(400, "entries_format: expected tsv or csv", "entries_format");
  const auto terms = parse_terms(body.required_text("entries"), format == "tsv" ? '\t' : ',');
  exchange->respond({201, json_text(glossary_json(glossaries_.add(name, terms)))});
}

void Api::deepl_list_glossaries(const Shared& exchange, const Parameters&) {
  json all = json::array();
  for (const StoredGlossary& one : glossaries_.list()) all.push_back(glossary_json(one));
  exchange->respond({200, json_text({{"glossaries", all}})});
}

void Api::deepl_show_glossary(const Shared& exchange, const Parameters& parameters) {
  exchange->respond({200, json_text(glossary_json(known_glossary(glossaries_, parameters.at("id"))))});
}

void Api::deepl_glossary_entries(const Shared& exchange, const Parameters& parameters) {
  std::string lines;
  for (const Glossary::Term& term : known_glossary(glossaries_, parameters.at("id")).terms)
    lines += (lines.empty() ? "" : "\n") + term.source + "\t" + term.target;
  exchange->respond({200, lines, "text/tab-separated-values; charset=utf-8"});
}

void Api::deepl_remove_glossary(const Shared& exchange, const Parameters& parameters) {
  if (!glossaries_.remove(parameters.at("id"))) throw ApiError(404, "no such glossary");
  exchange->respond({204, ""});
}

}  // namespace calque
