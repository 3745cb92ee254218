// The route that translates, and what the routes that translate share.
#include <algorithm>
#include <mutex>

#include "api_json.h"
#include "background.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "error_answer.h"
#include "translate_call.h"

namespace calque {

using nlohmann::json;

namespace {

std::string event(const std::string& name, const std::string& data) {
  return "event: " + name + "\ndata: " + data + "\n\n";
}

// {"chat": "cat"}
std::vector<Glossary::Term> glossary_terms(const json* given) {
  std::vector<Glossary::Term> terms;
  if (!given) return terms;
  if (!given->is_object()) throw ApiError(400, "glossary: expected an object of terms", "glossary");
  if (given->size() > max_glossary_terms)
    throw ApiError(413, fmt::format("glossary: at most {} terms", max_glossary_terms), "glossary");
  for (const auto& [source, target] : given->items()) {
    if (!target.is_string()) throw ApiError(400, "glossary: a term's translation is a text", "glossary");
    if (std::max(source.size(), target.get_ref<const std::string&>().size()) > max_term_bytes)
      throw ApiError(413, fmt::format("glossary: a term of more than {} bytes", max_term_bytes), "glossary");
    terms.push_back({source, target.get<std::string>()});
  }
  return terms;
}

constexpr size_t bytes_answered_at_once = 10'000;  // by the engine's thread, which others wait for

}  // namespace

void Api::check_lines(const std::vector<std::string>& lines, const char* field) const {
  for (const std::string& line : lines) {
    if (line.size() > options_.max_line_bytes)
      throw ApiError(413, fmt::format("a line of {} bytes; at most {}", line.size(), options_.max_line_bytes),
                     field);
  }
}

// Throws if it asks for too much. Its texts are not split into lines yet.
void Api::check_call(const TranslateCall& call) const {
  if (call.texts.size() > options_.max_texts)
    throw ApiError(413,
                   fmt::format("{} texts; at most {} per request", call.texts.size(), options_.max_texts));
  check_decode(*call.decode);
  if (std::max(call.decode->beam, call.decode->nbest) > options_.max_beam)
    throw ApiError(400, fmt::format("beam and nbest: at most {} here", options_.max_beam), "beam");
  if (call.answer_bytes() > options_.max_answer_bytes)
    throw ApiError(413,
                   fmt::format("the answer would have about {} bytes; at most {}: fewer texts, or a smaller "
                               "nbest, would fit",
                               call.answer_bytes(), options_.max_answer_bytes),
                   "nbest");
  if (call.line_count() > options_.max_lines)
    throw ApiError(
        413, fmt::format("{} lines; at most {} per request", call.line_count(), options_.max_lines), "text");
}

// Terms are forced by searches of their own, with the same options.
void Api::force_glossary(TranslateCall& call, const TranslationTask& like, const Check& check) {
  if (!call.glossary) call.glossary = std::make_shared<const Glossary>(std::move(call.terms));
  const auto translate_lines = [&](const std::vector<std::string>& lines,
                                   const std::vector<std::string>& prefixes) {
    TranslationTask next = like;
    next.lines = lines;
    next.prefixes = prefixes;
    return engine_.translate(std::move(next), check);
  };
  force_terms(*call.glossary, *call.model.translator, call.translations, translate_lines, call.prefix, check);
}

void Api::fail(const Shared& exchange, const TranslateCall& call, std::exception_ptr error) {
  call.failed ? call.failed(error) : answer_error(exchange, error);
}

// Translates all texts. `done` gets one answer per text, from the engine's thread or the background.
void Api::start(const Shared& exchange, std::shared_ptr<TranslateCall> call, TextsDone done) {
  check_call(*call);
  const std::string& client = exchange->request().client;
  if (call->needs_passes()) background_->check_room(client);
  TranslationTask task;
  task.translator = call->model.translator;
  task.client = client;
  task.decode = call->decode;
  task.deadline = deadline_of(exchange);
  const auto finish = [this, exchange, call, done, check = check_of(exchange), like = task] {
    try {
      if (call->has_glossary()) force_glossary(*call, like, check);
      std::vector<TextAnswer> all;
      for (size_t i = 0; i < call->texts.size(); ++i) all.push_back(call->answer_of(i, check));
      done(std::move(all));
    } catch (const ClientLeft&) {  // nobody is there to be answered
    } catch (...) {
      fail(exchange, *call, std::current_exception());
    }
  };
  task.ended = [this, exchange, call, finish](std::exception_ptr error) {
    if (error) return fail(exchange, *call, error);
    if (call->needs_passes() || call->answer_bytes() > bytes_answered_at_once) {
      background_->add(exchange->request().client, finish);
    } else {
      finish();
    }
  };
  task.prefixes = {call->prefix};
  task.lines = call->lines();
  check_lines(task.lines, "text");
  if (options_.log_text) {
    for (const std::string& text : call->texts) log::info("translate: {}", text);
  }
  task.line_done = [call](size_t line, const Translation& translation) {
    call->translations[line] = translation;
    if (call->partial) call->pass_on(call->text_of(line));
    if (call->line_done) call->line_done();
  };
  if (call->partial) {
    task.progress = [call](size_t line, const std::string& so_far) {
      call->unfinished[line] = so_far;
      call->pass_on(call->text_of(line));
    };
  }
  if (task.lines.empty()) return task.ended(nullptr);  // nothing but tags
  const int64_t id = engine_.submit(std::move(task));
  exchange->on_gone([this, id] { engine_.cancel(id); });
}

void Api::translate(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  auto call = std::make_shared<TranslateCall>();
  if (!body.take("text")) throw ApiError(400, "text is missing", "text");
  call->texts = body.texts("text");
  const std::string name = body.text("model");
  call->model = ready_model(name, body.text("precision"));
  auto decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  body.fields(request_decode_fields(*decode));
  if (decode->nbest > decode->beam && !decode->sample) decode->beam = decode->nbest;
  call->decode = decode;
  call->prefix = body.text("prefix");
  call->terms = glossary_terms(body.take("glossary"));
  const std::string format = body.text("format", "text");
  if (format != "text" && format != "html" && format != "xml")
    throw ApiError(400, "format: expected text, html or xml", "format");
  if (format != "text") call->add_markup({format == "html"});
  call->options = {body.flag("words", false), body.flag("scores", false), body.flag("attention", false)};
  const bool stream = body.flag("stream", false);
  body.finish();
  if (stream) return stream_translation(exchange, call);
  start(exchange, call, [exchange, call](std::vector<TextAnswer> translations) {
    exchange->respond({200, json_text(json_of(TranslateAnswer{call->facts(), std::move(translations)}))});
  });
}

void Api::stream_translation(const Shared& exchange, const std::shared_ptr<TranslateCall>& call) {
  // Nothing is sent before the task is accepted, so that a full queue can still be answered with 429.
  const auto begun = std::make_shared<std::once_flag>();
  const auto open = [exchange, begun] {
    std::call_once(*begun, [&] {
      exchange->begin_stream(
          {200, "", "text/event-stream", {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}});
    });
  };
  call->partial = [exchange, open](size_t text, const std::string& so_far) {
    open();
    exchange->send(event("partial", json_text({{"index", text}, {"text", so_far}})),
                   fmt::format("partial {}", text));
  };
  call->failed = [exchange, open](std::exception_ptr error) {
    open();
    const std::string& path = exchange->request().path;
    exchange->send(event("error", error_answer(error, path).body(path)));
    exchange->end_stream();
  };
  start(exchange, call, [exchange, open, call](const std::vector<TextAnswer>& translations) {
    open();
    for (size_t i = 0; i < translations.size(); ++i) {
      json translation = json_of(translations[i]);
      translation["index"] = i;
      exchange->send(event("translation", json_text(translation)));
    }
    exchange->send(event("done", json_text(json_of(call->facts()))));
    exchange->end_stream();
  });
}

}  // namespace calque
