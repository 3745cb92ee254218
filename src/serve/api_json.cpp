#include "api_json.h"

#include <algorithm>
#include <cmath>

#include "calque/base/unicode.h"
#include "calque/decode/attention_map.h"
#include "calque/decode/words.h"

namespace calque {

using nlohmann::json;

Fields request_decode_fields(DecodeConfig& config) {
  Fields all = fields(config);
  std::erase_if(all, [](const Field& field) { return field.name == "shots" || field.name == "batch"; });
  return all;
}

namespace {

std::map<std::string, std::string> multipart_fields(const std::string& body, const std::string& boundary) {
  std::map<std::string, std::string> values;
  const std::string mark = "--" + boundary;
  size_t at = body.find(mark);
  while (at != std::string::npos) {
    at += mark.size();
    if (body.compare(at, 2, "--") == 0) break;
    const size_t head_end = body.find("\r\n\r\n", at), next = body.find("\r\n" + mark, at);
    if (head_end == std::string::npos || next == std::string::npos || head_end > next) break;
    const std::string head = body.substr(at, head_end - at);
    const auto attribute = [&](const std::string& name) -> std::optional<std::string> {
      const size_t begin = head.find(" " + name + "=\"");
      if (begin == std::string::npos) return std::nullopt;
      const size_t from = begin + name.size() + 3;
      return head.substr(from, head.find('"', from) - from);
    };
    if (const auto name = attribute("name")) {
      values[*name] = body.substr(head_end + 4, next - head_end - 4);
      if (const auto file = attribute("filename")) values[*name + ".filename"] = *file;
    }
    at = next + 2;
  }
  return values;
}

}  // namespace

std::map<std::string, std::string> form_fields(const HttpRequest& request) {
  const std::string& type = request.header("content-type");
  if (type.starts_with("application/x-www-form-urlencoded")) return parse_query(request.body);
  const size_t boundary = type.find("boundary=");
  if (!type.starts_with("multipart/form-data") || boundary == std::string::npos) return {};
  std::string mark = type.substr(boundary + 9);
  mark = mark.substr(0, mark.find(';'));
  std::erase(mark, '"');
  return mark.empty() ? std::map<std::string, std::string>{} : multipart_fields(request.body, mark);
}

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
  return JsonReader(request.body).object();
}

void check_languages(const std::string& source, const std::string& target) {
  if (source != "auto" && source != "fr")
    throw ApiError(400, fmt::format("{}: only French (fr) is translated", shorten(source, 20)), "source");
  if (target.empty()) throw ApiError(400, "the target language is missing; it is English (en)", "target");
  if (target != "en")
    throw ApiError(400, fmt::format("{}: only English (en) is written", shorten(target, 20)), "target");
}

std::string lower_ascii(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return text;
}

namespace {

// The tokens that were forced, not searched for: they have no scores.
size_t forced_tokens(const Hypothesis& hypothesis) {
  const auto& scores = hypothesis.token_log_probabilities;
  const size_t searched = scores.size() - (hypothesis.ended && !scores.empty() ? 1 : 0);
  return hypothesis.tokens.size() - std::min(searched, hypothesis.tokens.size());
}

// Each word with the product of its tokens' probabilities; those of a forced prefix count as 1.
std::vector<WordAnswer> scored_words(const Tokenizer& tokenizer, const Hypothesis& hypothesis) {
  const PieceWords words = words_of(tokenizer, hypothesis.tokens);
  const auto& scores = hypothesis.token_log_probabilities;
  const size_t forced = forced_tokens(hypothesis);
  std::vector<double> log_probabilities(words.words.size(), 0.0);
  for (size_t i = forced; i < hypothesis.tokens.size(); ++i)
    log_probabilities[words.word_of[i]] += static_cast<double>(scores[i - forced]);
  std::vector<WordAnswer> all;
  for (size_t i = 0; i < words.words.size(); ++i)
    all.push_back({words.words[i], std::exp(log_probabilities[i])});
  return all;
}

std::vector<TokenAnswer> scored_tokens(const Tokenizer& tokenizer, const Hypothesis& hypothesis) {
  const auto& scores = hypothesis.token_log_probabilities;
  const size_t forced = forced_tokens(hypothesis);
  std::vector<TokenAnswer> all;
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool is_end = forced + i >= hypothesis.tokens.size();
    all.push_back(
        {is_end ? "</s>" : tokenizer.piece(hypothesis.tokens[forced + i]), static_cast<double>(scores[i])});
  }
  return all;
}

}  // namespace

std::string part_text(const Translator& translator, const std::string& source, const Hypothesis& part) {
  return part.is_copied() ? source : clean_text(translator.tokenizer().decode(part.tokens));
}

void add_segments(std::vector<SegmentAnswer>& segments, int64_t line, const Translator& translator,
                  const Translation& translation, const TextOptions& options, size_t& weights_left,
                  const Check& check) {
  const Tokenizer& tokenizer = translator.tokenizer();
  const TranslatedText& best = translation.best.front();
  for (size_t i = 0; i < best.parts.size(); ++i) {
    check();
    const Hypothesis& part = best.parts[i];
    SegmentAnswer segment;
    segment.line = line;
    segment.source = translation.sources[i];
    segment.looped = translation.looped;
    segment.copied = part.is_copied();
    segment.complete = part.ended;
    segment.text = part_text(translator, segment.source, part);
    const auto source_tokens =
        options.words || options.attention ? tokenizer.encode(segment.source) : std::vector<int32_t>{};
    if (options.words)
      segment.words =
          segment.copied ? std::vector<WordAnswer>{{segment.text, 1.0}} : scored_words(tokenizer, part);
    if (options.scores) segment.tokens = scored_tokens(tokenizer, part);
    if (options.words || options.attention) segment.source_words = words_of(tokenizer, source_tokens).words;
    if (options.attention && !segment.copied && weights_left > 0) {
      segment.attention =
          map_attention(translator.decoder(), tokenizer, translator.format(), source_tokens, part.tokens)
              .weights;
      weights_left -= std::min(weights_left, segment.attention->size() * segment.source_words->size());
    }
    segments.push_back(std::move(segment));
  }
}

}  // namespace calque
