// The routes that DeepL's clients call.
#include <fmt/chrono.h>

#include <sstream>

#include "api_json.h"
#include "calque/base/text.h"
#include "compatible_answers.h"
#include "translate_call.h"

namespace calque {

std::vector<std::string> listed(JsonReader& body, const std::string& name) {
  std::vector<std::string> all;
  for (const std::string& given : body.texts(name)) {
    std::istringstream parts(given);
    for (std::string one; std::getline(parts, one, ',');) all.push_back(one);
  }
  return all;
}

namespace {

DeeplGlossary glossary_answer(const StoredGlossary& glossary) {
  DeeplGlossary answer{glossary.id, glossary.name};
  answer.creation_time = fmt::format("{:%Y-%m-%dT%H:%M:%S}.000000Z", fmt::gmtime(glossary.created));
  answer.entry_count = static_cast<int64_t>(glossary.terms->size());
  return answer;
}

std::set<std::string> tag_names(JsonReader& body, const std::string& name) {
  std::set<std::string> names;
  for (const std::string& one : listed(body, name)) names.insert(lower_ascii(one));
  return names;
}

StoredGlossary known_glossary(const GlossaryStore& store, const std::string& id) {
  const auto found = store.find(id);
  if (!found) throw ApiError(404, "no such glossary");
  return *found;
}

// `glossary_id`, or all `glossary_ids`. Where several have the same term, the first one's counts.
std::vector<StoredGlossary> wanted_glossaries(JsonReader& body, const GlossaryStore& store) {
  std::vector<std::string> ids = listed(body, "glossary_ids");
  if (const std::string id = body.text("glossary_id"); !id.empty()) {
    if (!ids.empty()) throw ApiError(400, "glossary_id cannot be combined with glossary_ids", "glossary_ids");
    ids.push_back(id);
  }
  std::vector<StoredGlossary> all;
  size_t terms = 0;
  for (const std::string& id : ids) {
    all.push_back(known_glossary(store, id));
    terms += all.back().terms->size();
    if (terms > max_glossary_terms)
      throw ApiError(413, fmt::format("glossary_ids: at most {} terms", max_glossary_terms), "glossary_ids");
  }
  return all;
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
  const auto glossaries = wanted_glossaries(body, glossaries_);
  if (glossaries.size() == 1) {
    call->glossary = glossaries.front().glossary;
  } else {
    for (const StoredGlossary& one : glossaries)
      call->terms.insert(call->terms.end(), one.terms->begin(), one.terms->end());
  }
  if (!handling.empty()) {
    call->add_markup({handling == "html", tag_names(body, "splitting_tags"), tag_names(body, "ignore_tags")});
  } else if (split != "1") {
    join_lines(call->texts);
  }
  call->model = ready_model("", "");
  auto decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  decode->split_sentences = split != "0";
  call->decode = decode;
  start(exchange, call, [exchange](const std::vector<TextAnswer>& translations) {
    DeeplTranslations answer;
    for (const TextAnswer& one : translations) answer.translations.push_back({one.text});
    exchange->respond({200, json_text(json_of(answer))});
  });
}

void Api::deepl_languages(const Shared& exchange, const Parameters&) {
  // DeepL's Python client puts it into a body, its client for npm into the query.
  const HttpRequest& request = exchange->request();
  const auto type = request.query.find("type");
  const bool is_target = type != request.query.end()
                             ? type->second == "target"
                             : !request.body.empty() && JsonReader(body_of(request)).text("type") == "target";
  const std::vector<DeeplLanguage> source = {{"FR", "French"}},
                                   target = {{"EN-GB", "English (British)", false},
                                             {"EN-US", "English (American)", false}};
  exchange->respond({200, json_text(json_of(is_target ? target : source))});
}

void Api::deepl_glossary_languages(const Shared& exchange, const Parameters&) {
  exchange->respond({200, json_text(json_of(DeeplGlossaryLanguages{}))});
}

void Api::deepl_usage(const Shared& exchange, const Parameters&) {
  exchange->respond({200, json_text(json_of(DeeplUsage{}))});
}

void Api::deepl_add_glossary(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  const std::string name = body.required_text("name"), format = body.text("entries_format", "tsv");
  if (lower_ascii(body.text("source_lang", "fr")) != "fr" ||
      !lower_ascii(body.text("target_lang", "en")).starts_with("en"))
    throw ApiError(400, "glossaries are from French (fr) into English (en)", "source_lang");
  if (format != "tsv" && format != "csv")
    throw ApiError(400, "entries_format: expected tsv or csv", "entries_format");
  if (name.size() > max_term_bytes)
    throw ApiError(413, fmt::format("name: at most {} bytes", max_term_bytes), "name");
  auto terms = parse_terms(body.required_text("entries"), format == "tsv" ? '\t' : ',');
  exchange->respond({201, json_text(json_of(glossary_answer(glossaries_.add(name, std::move(terms)))))});
}

void Api::deepl_list_glossaries(const Shared& exchange, const Parameters&) {
  DeeplGlossaries answer;
  for (const StoredGlossary& one : glossaries_.list()) answer.glossaries.push_back(glossary_answer(one));
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::deepl_show_glossary(const Shared& exchange, const Parameters& parameters) {
  exchange->respond(
      {200, json_text(json_of(glossary_answer(known_glossary(glossaries_, parameters.at("id")))))});
}

void Api::deepl_glossary_entries(const Shared& exchange, const Parameters& parameters) {
  std::string lines;
  const StoredGlossary glossary = known_glossary(glossaries_, parameters.at("id"));
  for (const Glossary::Term& term : *glossary.terms)
    lines += (lines.empty() ? "" : "\n") + term.source + "\t" + term.target;
  exchange->respond({200, lines, "text/tab-separated-values; charset=utf-8"});
}

void Api::deepl_remove_glossary(const Shared& exchange, const Parameters& parameters) {
  if (!glossaries_.remove(parameters.at("id"))) throw ApiError(404, "no such glossary");
  exchange->respond({204, ""});
}

}  // namespace calque
