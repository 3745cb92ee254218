// The routes that clients of LibreTranslate and OpenAI call.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <sstream>
#include <utility>

#include "api_json.h"
#include "calque/base/hash.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "compatible_answers.h"
#include "error_answer.h"
#include "translate_call.h"

namespace calque {

using nlohmann::json;

namespace {

constexpr size_t max_kept_files = 20;

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

namespace {

LibreDetection detection_of(const std::string& text) {
  const auto [language, confidence] = detect_language(text);
  return {language, std::round(100 * confidence)};
}

}  // namespace

void Api::libretranslate(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  const json* q = body.take("q");
  if (!q) throw ApiError(400, "q is missing", "q");
  const bool many = q->is_array();
  auto call = std::make_shared<TranslateCall>();
  call->texts = body.texts("q");
  const std::string source = body.text("source", "auto");
  check_languages(source, body.text("target", "en"));
  const std::string format = body.text("format", "text");
  if (format != "text" && format != "html") throw ApiError(400, "format: expected text or html", "format");
  if (format == "html") call->add_markup({});
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
  std::vector<LibreDetection> detected;  // what is said of a text; all are translated as French
  if (source == "auto") {
    for (const std::string& text : call->texts) detected.push_back(detection_of(text));
  }
  start(exchange, call,
        [exchange, many, alternatives, detected](const std::vector<TextAnswer>& translations) {
          std::vector<std::string> texts;
          std::vector<std::vector<std::string>> others;
          for (const TextAnswer& one : translations) {
            texts.push_back(one.text);
            others.emplace_back();
            for (size_t i = 1; i < one.nbest.size(); ++i) others.back().push_back(one.nbest[i].text);
          }
          LibreTranslation answer;
          if (many) {
            answer.text = texts;
            if (alternatives > 0) answer.alternatives = others;
            if (!detected.empty()) answer.detected = detected;
          } else {
            answer.text = texts.front();
            if (alternatives > 0) answer.alternatives = others.front();
            if (!detected.empty()) answer.detected = detected.front();
          }
          exchange->respond({200, json_text(json_of(answer))});
        });
}

void Api::libretranslate_languages(const Shared& exchange, const Parameters&) {
  const std::vector<LibreLanguage> answer = {{"fr", "French", {"en"}}, {"en", "English", {}}};
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::libretranslate_detect(const Shared& exchange, const Parameters&) {
  JsonReader body(body_of(exchange->request()));
  const std::vector<LibreDetection> answer = {detection_of(body.required_text("q"))};
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::libretranslate_settings(const Shared& exchange, const Parameters&) {
  LibreSettings answer;
  answer.needs_token = !options_.token.empty();
  exchange->respond({200, json_text(json_of(answer))});
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
  const std::string lower = lower_ascii(name);
  const bool is_html = lower.ends_with(".html") || lower.ends_with(".htm");
  if (!is_html && !lower.ends_with(".txt"))
    throw ApiError(400, "file: expected a text (.txt) or a page (.html)", "file");
  if (find_invalid_utf8(form.at("file"))) throw ApiError(400, "file: not valid UTF-8", "file");
  auto call = std::make_shared<TranslateCall>();
  call->texts = {form.at("file")};
  if (is_html) call->add_markup({});
  call->model = ready_model(field("model", ""), "");  // the page sends it; LibreTranslate's clients do not
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  // A proxy that takes the TLS away says so. A client that claims it gets a wrong address, nobody else.
  const bool is_tls = exchange->request().header("x-forwarded-proto") == "https";
  const std::string site = (is_tls ? "https://" : "http://") + exchange->request().header("host");
  start(exchange, call, [this, exchange, name, site](const std::vector<TextAnswer>& translations) {
    const std::string id = random_name();
    {
      const std::lock_guard lock(files_mutex_);
      files_[id] = {name, translations.front().text};
      file_order_.push_back(id);
      if (file_order_.size() > max_kept_files) {
        files_.erase(file_order_.front());
        file_order_.erase(file_order_.begin());
      }
    }
    const std::string url = fmt::format("{}/download_file/{}/{}", site, id, encode_url(name));
    exchange->respond({200, json_text(json_of(LibreFile{url}))});
  });
}

void Api::libretranslate_download(const Shared& exchange, const Parameters& parameters) {
  const std::lock_guard lock(files_mutex_);
  const auto found = files_.find(parameters.at("id"));
  if (found == files_.end()) throw ApiError(404, "no such file; only the newest are kept");
  exchange->respond(
      {200, found->second.second, "text/plain; charset=utf-8", {{"Content-Disposition", "attachment"}}});
}

std::optional<std::string> content_text(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.empty()) return std::nullopt;
  std::string text;
  for (const json& part : content) {
    if (!part.is_object() || !part.contains("text") || !part["text"].is_string()) return std::nullopt;
    text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  }
  return text;
}

namespace {

// True for "Please translate this sentence into English", "You are a translator. Translate to English", …
bool is_instruction(std::string head) {
  head = lower_case(head);
  if (head.starts_with("you are ")) {  // a sentence before it
    const size_t stop = head.find(". ");
    if (stop == std::string::npos) return false;
    head.erase(0, stop + 2);
  }
  for (const std::string_view polite :
       {"please ", "can you ", "could you ", "please "}) {  // "could you please"
    if (head.starts_with(polite)) head.erase(0, polite.size());
  }
  const bool asks = head.starts_with("translate ") || head.starts_with("traduis ") ||
                    head.starts_with("traduisez ") || head.starts_with("traduire ");
  return asks && (head.find("english") != std::string::npos || head.find("anglais") != std::string::npos);
}

// "French: … English:" around a text.
std::string_view without_labels(std::string_view text) {
  const auto trim = [&] {
    const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    text.remove_prefix(begin);
    text.remove_suffix(text.size() - (text.find_last_not_of(" \t\r\n") + 1));
  };
  trim();
  for (const std::string_view label : {"English:", "english:", "Anglais :", "anglais :"}) {
    if (text.ends_with(label)) text.remove_suffix(label.size());
  }
  for (const std::string_view label : {"French:", "french:", "Français :", "français :"}) {
    if (text.starts_with(label)) text.remove_prefix(label.size());
  }
  trim();
  return text;
}

}  // namespace

std::string without_instruction(const std::string& text) {
  // A line without a colon may be a French title that is about translating.
  const size_t end = std::min(text.find(':'), text.find('\n'));
  if (end == std::string::npos || !is_instruction(text.substr(0, end))) return text;
  if (text[end] == '\n' && lower_case(text.substr(0, end)).find("english") == std::string::npos) return text;
  const std::string_view rest = without_labels(std::string_view(text).substr(end + 1));
  return rest.empty() ? text : std::string(rest);
}

void Api::openai(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const json* messages = body.take("messages");
  if (!messages || !messages->is_array() || messages->empty())
    throw ApiError(400, "messages is missing", "messages");
  const json& last = messages->back();
  const auto content =
      last.is_object() && last.contains("content") ? content_text(last["content"]) : std::nullopt;
  if (!content || last.value("role", json()) != "user")
    throw ApiError(400, "messages: the last must be a user's, with a text to translate", "messages");
  const bool stream = body.flag("stream", false);
  auto call = std::make_shared<TranslateCall>();
  call->texts = {without_instruction(*content)};
  const std::string model = body.text("model");
  call->model = ready_model(models_.find(model) ? model : "", "");
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  const ChatHead head{"chatcmpl-" + random_name(), std::time(nullptr), call->model.name};
  if (stream) return stream_openai(exchange, call, json_of(head));
  start(exchange, call, [exchange, head, call](const std::vector<TextAnswer>& translations) {
    ChatChoice choice;
    choice.message.content = translations.front().text;
    const ChatAnswer answer{head, {choice}, {call->source_tokens(), call->target_tokens()}};
    exchange->respond({200, json_text(json_of(answer))});
  });
}

// A line is sent once it is final: a client cannot take words back.
void Api::stream_openai(const Shared& exchange, const std::shared_ptr<TranslateCall>& call,
                        const json& head) {
  const auto begun = std::make_shared<bool>(false);
  const auto open = [exchange, begun] {
    if (!std::exchange(*begun, true))
      exchange->begin_stream({200, "", "text/event-stream", {{"Cache-Control", "no-store"}}});
  };
  const auto send = [exchange, head, open](const json& delta, const json& reason) {
    open();
    json chunk = head;
    chunk["object"] = "chat.completion.chunk";
    chunk["choices"] = {{{"index", 0}, {"delta", delta}, {"finish_reason", reason}}};
    exchange->send("data: " + json_text(chunk) + "\n\n");
  };
  call->failed = [this, exchange, begun](std::exception_ptr error) {
    if (!*begun) return answer_error(exchange, error);
    const std::string& path = exchange->request().path;
    exchange->send("data: " + error_answer(error, path).body(path) + "\n\n");
    exchange->end_stream();
  };
  const auto sent = std::make_shared<size_t>(0);
  // Not the call itself: it would keep itself alive.
  call->line_done = [send, sent, weak = std::weak_ptr(call)] {
    const auto own = weak.lock();
    for (; own && *sent < own->translations.size() && !own->translations[*sent].best.empty(); ++*sent)
      send({{"role", "assistant"}, {"content", (*sent > 0 ? "\n" : "") + own->translations[*sent].text()}},
           nullptr);
  };
  start(exchange, call, [exchange, send](const std::vector<TextAnswer>&) {
    send(json::object(), "stop");
    exchange->send("data: [DONE]\n\n");
    exchange->end_stream();
  });
}

}  // namespace calque
