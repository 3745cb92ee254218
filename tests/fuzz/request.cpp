// Fuzz target: what `calque serve` reads of a request: JSON, forms, queries, glossaries, HTML and XML. The
// first byte chooses.
#include "../../src/serve/api_json.h"
#include "calque/base/unicode.h"
#include "calque/decode/markup.h"
#include "calque/serve/api.h"
#include "calque/serve/json_reader.h"
#include "fuzz.h"

namespace {

// A document whose translations are its own words in reverse order.
void translate_markup(const std::string& document, bool is_html) {
  const calque::Markup markup(document, {is_html, {"p"}, {"x"}});
  std::vector<calque::AlignedText> texts;
  for (const std::string& segment : markup.segments()) {
    calque::AlignedText text;
    for (const auto& word : calque::split_words(calque::code_points(segment)))
      text.words.insert(text.words.begin(), calque::to_utf8(word));
    text.source_words = text.words.size();
    for (size_t i = 0; i < text.words.size(); ++i) text.sources.push_back(text.words.size() - 1 - i);
    texts.push_back(std::move(text));
  }
  const std::string joined = markup.join(texts);
  // Every tag comes out exactly once: no '<' is lost or added.
  const auto tags = [](const std::string& text) { return std::count(text.begin(), text.end(), '>'); };
  if (tags(joined) > tags(document)) std::abort();
}

void read_request(const std::string& text, int kind) {
  calque::HttpRequest request;
  request.body = text;
  switch (kind) {
    case 0: {
      for (const char* path : {"/translate", "/translate_file"}) {
        request.path = path;
        calque::given_token(request);
      }
      calque::JsonReader body(text);
      calque::DecodeConfig decode;
      body.texts("text");
      body.fields(calque::request_decode_fields(decode));
      calque::check_decode(decode);
      calque::listed(body, "tags");
      if (const auto* content = body.take("content"))
        calque::without_instruction(calque::content_text(*content).value_or(""));
      body.finish();
      return;
    }
    case 1:
      request.headers["content-type"] = "application/x-www-form-urlencoded";
      calque::json_text(calque::body_of(request));
      return;
    case 2:
      request.headers["content-type"] = "multipart/form-data; boundary=" + text.substr(0, text.find('\n'));
      calque::form_fields(request);
      return;
    case 3:
      calque::parse_query(text);
      calque::decode_url(text, true);
      calque::parts_of_path(text);
      return;
    case 4:
      calque::parse_terms(text, '\t');
      calque::Glossary(calque::parse_terms(text, ',')).terms_in(text);
      return;
    default:
      translate_markup(text, kind == 5);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read_request({reinterpret_cast<const char*>(data + 1), size - 1}, data[0] % 7);
  } catch (const calque::ApiError&) {
  } catch (const calque::UserError&) {
  }
  return 0;
}
