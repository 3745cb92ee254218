// The routes that clients of LibreTranslate, DeepL and OpenAI call.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <random>
#include <sstream>

#include "api_json.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "translate_call.h"

namespace calque {

using nlohmann::json;

namespace {

constexpr size_t max_kept_files = 20;

// A body as JSON, or a form with the same names.
json body_of(const HttpRequest& request) {
  if (request.header("content-type").starts_with("application/x-www-form-urlencoded")) {
    json object = json::object();
    std::string_view left = request.body;
    while (!left.empty()) {  // a name may come several times
      const size_t end = left.find('&');
      for (const auto& [name, value] : parse_query(left.substr(0, end))) {
        if (!object.contains(name)) {
          object[name] = value;
        } else {
          if (!object[name].is_array()) object[name] = json::array({object[name]});
          object[name].push_back(value);
        }
      }
      left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    }
    return object;
  }
  const auto form = form_fields(request);
  if (!form.empty()) return form;
  const json object = json::parse(request.body, nullptr, false);
  if (!object.is_object()) throw ApiError(400, "the request's body is not a JSON object");
  return object;
}

void check_languages(const std::string& source, const std::string& target) {
  if (source != "auto" && source != "fr")
    throw ApiError(400, fmt::format("{}: only French (fr) is translated", shorten(source, 20)), "source");
  if (target != "en")
    throw ApiError(400, fmt::format("{}: only English (en) is written", shorten(target, 20)), "target");
}

std::string lower_ascii(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return text;
}

}  // namespace

std::pair<std::string, double> detect_language(const std::string& text) {
  static constexpr std::array french = {"le",   "la",   "les",  "de",   "des",  "un",  "une", "et",
                                        "est",  "que",  "qui",  "dans", "pour", "pas", "je",  "il",
                                        "elle", "nous", "vous", "ne",   "se",   "du",  "en",  "au",
                                        "avec", "sur",  "ce",   "mon",  "ma",   "où"};
  static constexpr std::array english = {"the",  "of",  "and", "is",  "to", "in",   "a",   "that", "it",
                                         "he",   "she", "we",  "you", "i",  "for",  "not", "with", "on",
                                         "this", "my",  "are", "was", "be", "have", "at"};
  double fr = 0.5, en = 0.5;
  for (const std::u32string& word : split_words(code_points(lower_case(text)))) {
    std::string plain = to_utf8(word);
    while (!plain.empty() && std::string(".,;:!?").find(plain.back()) != std::string::npos) plain.pop_back();
    fr += std::find(french.begin(), french.end(), plain) != french.end();
    en += std::find(english.begin(), english.end(), plain) != english.end();
    for (const char* part : {"é", "è", "ê", "à", "ç", "ù", "î", "ô", "œ", "l'", "d'", "qu'", "l’", "d’"})
      fr += plain.find(part) != std::string::npos ? 0.5 : 0;
  }
  return fr >= en ? std::pair{std::string("fr"), fr / (fr + en)}
                  : std::pair{std::string("en"), en / (fr + en)};
}

void Api::libretranslate(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  const json* q = body.take("q");
  if (!q) throw ApiError(400, "q is missing", "q");
  const bool many = q->is_array();
  auto call = std::make_shared<TranslateCall>();
  call->texts = body.texts("q");
  check_languages(body.text("source", "auto"), body.text("target", "en"));
  if (body.text("format", "text") != "text")
    throw ApiError(400, "format: only text is translated; html is not", "format");
  const json* asked = body.take("alternatives");
  const int64_t alternatives = !asked ? 0
                               : asked->is_number_integer()
                                   ? asked->get<int64_t>()
                                   : std::atoll(asked->is_string() ? asked->get<std::string>().c_str() : "0");
  if (alternatives < 0 || alternatives > 20)
    throw ApiError(400, "alternatives: expected a number from 0 to 20", "alternatives");
  call->model = ready_model("", "");
  auto decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  decode->nbest = alternatives + 1;
  decode->beam = std::max(decode->beam, decode->nbest);
  call->decode = decode;
  start(exchange, call, [exchange, many, alternatives](const std::vector<json>& translations) {
    json texts = json::array(), others = json::array();
    for (const json& one : translations) {
      texts.push_back(one["text"]);
      json list = json::array();
      for (size_t i = 1; one.contains("nbest") && i < one["nbest"].size(); ++i)
        list.push_back(one["nbest"][i]["text"]);
      others.push_back(list);
    }
    json answer = {{"translatedText", many ? texts : texts[0]}};
    if (alternatives > 0) answer["alternatives"] = many ? others : others[0];
    exchange->respond({200, json_text(answer)});
  });
}

void Api::libretranslate_languages(const Shared& exchange, const Parameters&) {
  exchange->respond(
      {200, json_text(json::array({{{"code", "fr"}, {"name", "French"}, {"targets", {"en"}}},
                                   {{"code", "en"}, {"name", "English"}, {"targets", json::array()}}}))});
}

void Api::libretranslate_detect(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  const auto [language, confidence] = detect_language(body.required_text("q"));
  exchange->respond({200, json_text(json::array(
                              {{{"language", language}, {"confidence", std::round(100 * confidence)}}}))});
}

void Api::libretranslate_settings(const Shared& exchange, const Parameters&) {
  exchange->respond({200, json_text({{"apiKeys", !options_.token.empty()},
                                     {"charLimit", -1},
                                     {"filesTranslation", true},
                                     {"frontendTimeout", 500},
                                     {"keyRequired", !options_.token.empty()},
                                     {"language",
                                      {{"source", {{"code", "fr"}, {"name", "French"}}},
                                       {"target", {{"code", "en"}, {"name", "English"}}}}},
                                     {"suggestions", false},
                                     {"supportedFilesFormat", {".txt"}}})});
}

void Api::libretranslate_file(const Shared& exchange, const Parameters&) {
  const auto form = form_fields(exchange->request());
  const auto field = [&](const std::string& name, const std::string& otherwise) {
    const auto found = form.find(name);
    return found == form.end() ? otherwise : found->second;
  };
  if (!form.contains("file")) throw ApiError(400, "file is missing: a multipart form is expected", "file");
  check_languages(field("source", "auto"), field("target", "en"));
  std::string name = field("file.filename", "translation.txt");
  std::erase_if(
      name, [](char c) { return c == '/' || c == '\\' || c == '"' || static_cast<unsigned char>(c) < 32; });
  if (!lower_ascii(name).ends_with(".txt"))
    throw ApiError(400, "file: only text files (.txt) are translated", "file");
  if (find_invalid_utf8(form.at("file"))) throw ApiError(400, "file: not valid UTF-8", "file");
  auto call = std::make_shared<TranslateCall>();
  call->texts = {form.at("file")};
  call->model = ready_model("", "");
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  const std::string host = exchange->request().header("host");
  start(exchange, call, [this, exchange, name, host](const std::vector<json>& translations) {
    std::random_device device;
    const std::string id = fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
    {
      const std::lock_guard lock(files_mutex_);
      files_[id] = {name, translations[0]["text"].get<std::string>()};
      file_order_.push_back(id);
      if (file_order_.size() > max_kept_files) {
        files_.erase(file_order_.front());
        file_order_.erase(file_order_.begin());
      }
    }
    exchange->respond({200, json_text({{"translatedFileUrl",
                                        fmt::format("http://{}/download_file/{}/{}", host, id, name)}})});
  });
}

void Api::libretranslate_download(const Shared& exchange, const Parameters& parameters) {
  const std::lock_guard lock(files_mutex_);
  const auto found = files_.find(parameters.at("id"));
  if (found == files_.end()) throw ApiError(404, "no such file; only the newest are kept");
  exchange->respond(
      {200, found->second.second, "text/plain; charset=utf-8", {{"Content-Disposition", "attachment"}}});
}

void Api::deepl(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  auto call = std::make_shared<TranslateCall>();
  call->texts = body.texts("text");
  if (call->texts.empty()) throw ApiError(400, "text is missing", "text");
  const std::string source = lower_ascii(body.text("source_lang", "auto")),
                    target = lower_ascii(body.text("target_lang"));
  check_languages(source, target.starts_with("en") ? "en" : target);
  for (const char* unsupported : {"tag_handling", "glossary_id"}) {
    if (!body.text(unsupported).empty())
      throw ApiError(400, std::string(unsupported) + ": not supported here", unsupported);
  }
  call->model = ready_model("", "");
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  start(exchange, call, [exchange](const std::vector<json>& translations) {
    json all = json::array();
    for (const json& one : translations)
      all.push_back({{"detected_source_language", "FR"}, {"text", one["text"]}});
    exchange->respond({200, json_text({{"translations", all}})});
  });
}

void Api::openai(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const json* messages = body.take("messages");
  if (!messages || !messages->is_array() || messages->empty())
    throw ApiError(400, "messages is missing", "messages");
  const json& last = messages->back();
  if (!last.is_object() || last.value("role", json()) != "user" || !last.contains("content") ||
      !last["content"].is_string())
    throw ApiError(400, "messages: the last must be a user's, with a text to translate", "messages");
  if (body.flag("stream", false))
    throw ApiError(400, "stream: not supported here; /v1/translate streams", "stream");
  auto call = std::make_shared<TranslateCall>();
  call->texts = {last["content"].get<std::string>()};
  const std::string model = body.text("model");
  call->model = ready_model(models_.find(model) ? model : "", "");
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  const std::string name = call->model.name;
  start(exchange, call, [exchange, name](const std::vector<json>& translations) {
    std::random_device device;
    exchange->respond(
        {200, json_text({{"id", fmt::format("chatcmpl-{:08x}{:08x}", device(), device())},
                         {"object", "chat.completion"},
                         {"created", std::time(nullptr)},
                         {"model", name},
                         {"choices",
                          {{{"index", 0},
                            {"message", {{"role", "assistant"}, {"content", translations[0]["text"]}}},
                            {"finish_reason", "stop"}}}},
                         {"usage", {{"prompt_tokens", 0}, {"completion_tokens", 0}, {"total_tokens", 0}}}})});
  });
}

}  // namespace calque
