// The routes of calque's own API.
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "api_json.h"
#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/unicode.h"
#include "calque/data/batch.h"
#include "calque/decode/attention_map.h"
#include "calque/kernels/candidates.h"
#include "calque/metrics/text_scores.h"
#include "calque/model/batch_layout.h"
#include "page.h"
#include "translate_call.h"

namespace calque {

using nlohmann::json;

namespace {

std::string event(const std::string& name, const json& data) {
  return "event: " + name + "\ndata: " + json_text(data) + "\n\n";
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
    terms.push_back({source, target.get<std::string>()});
  }
  return terms;
}

constexpr size_t lines_answered_at_once = 100;  // by the engine's thread, which others wait for

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void Api::page(const Shared& exchange, const Parameters&) {
  const std::string nonce = random_name();
  std::string html(page::embedded_files[0].content);
  for (size_t at = html.find("{{nonce}}"); at != std::string::npos; at = html.find("{{nonce}}", at))
    html.replace(at, 9, nonce);
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; img-src 'self' "
      "data:; "
      "frame-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      nonce);
  exchange->respond({200,
                     html,
                     "text/html; charset=utf-8",
                     {{"Content-Security-Policy", policy},
                      {"Cache-Control", "no-store"},
                      {"Referrer-Policy", "no-referrer"}}});
}

void Api::health(const Shared& exchange, const Parameters&) {
  const bool ready = models_.is_ready();
  exchange->respond({ready ? 200 : 503, json_text({{"status", ready                  ? "ready"
                                                              : models_.has_failed() ? "failed"
                                                                                     : "loading"}})});
}

void Api::prometheus(const Shared& exchange, const Parameters&) {
  const EngineCounts counts = engine_.counts();
  std::string text = requests_.prometheus();
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    text += fmt::format("# HELP calque_{0} {2}\n# TYPE calque_{0} {1}\ncalque_{0} {3}\n", name, type, help,
                        value);
  };
  add("queue_depth", "gauge", "Lines that wait or are being translated.",
      static_cast<double>(counts.waiting_lines));
  add("tasks", "gauge", "Requests being translated.", static_cast<double>(counts.tasks));
  add("sentences_total", "counter", "Sentences translated.", static_cast<double>(counts.sentences));
  add("source_tokens_total", "counter", "Tokens read.", static_cast<double>(counts.source_tokens));
  add("target_tokens_total", "counter", "Tokens written.", static_cast<double>(counts.target_tokens));
  add("search_seconds_total", "counter", "Time spent searching.", counts.busy_seconds);
  add("resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes());
  exchange->respond({200, text, "text/plain; version=0.0.4"});
}

void Api::list_models(const Shared& exchange, const Parameters&) {
  json all = json::array();
  for (const ServedModel& one : models_.list_with_scores()) {
    const auto speed = engine_.sentences_per_second(one.translator);
    all.push_back(one.to_json());
    all.back()["sentences_per_second"] = speed ? json(*speed) : json();
  }
  exchange->respond({200, json_text({{"default", models_.default_name()},
                                     {"precisions", models_.precisions()},
                                     {"models", all}})});
}

void Api::add_model(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const std::string name = body.required_text("model");
  body.finish();
  if (options_.token.empty())
    throw ApiError(403, "models can be added only where the server has a token (--token)");
  models_.add(name);
  exchange->respond({202, json_text({{"state", "loading"}})});
}

void Api::remove_model(const Shared& exchange, const Parameters& parameters) {
  if (options_.token.empty())
    throw ApiError(403, "models can be removed only where the server has a token (--token)");
  if (!models_.remove(parameters.at("name"))) throw ApiError(404, "no such model");
  exchange->respond({200, json_text({{"removed", parameters.at("name")}})});
}

void Api::check_lines(const std::vector<std::string>& lines, const char* field) const {
  for (const std::string& line : lines) {
    if (line.size() > options_.max_line_bytes)
      throw ApiError(413, fmt::format("a line of {} bytes; at most {}", line.size(), options_.max_line_bytes),
                     field);
  }
}

// Throws if nobody waits for an answer any more, or it has taken too long.
void Api::check_wanted(bool client_left, std::chrono::steady_clock::time_point deadline) const {
  if (client_left) throw ClientLeft();
  if (stopping_) throw ApiError(503, "the server has stopped");
  if (std::chrono::steady_clock::now() > deadline) throw TimeOver("the request took too long");
}

// Translates all texts. `done` gets one JSON object per text, from the engine's thread or the background.
void Api::start(const Shared& exchange, std::shared_ptr<TranslateCall> call, TextsDone done) {
  if (call->texts.size() > options_.max_texts)
    throw ApiError(413,
                   fmt::format("{} texts; at most {} per request", call->texts.size(), options_.max_texts));
  check_decode(*call->decode);
  if (std::max(call->decode->beam, call->decode->nbest) > options_.max_beam)
    throw ApiError(400, fmt::format("beam and nbest: at most {} here", options_.max_beam), "beam");
  if (call->needs_passes() && waiting_in_background_ >= max_in_background)
    throw QueueFull("too many requests are waiting");
  if (call->line_count() > options_.max_lines)
    throw ApiError(
        413, fmt::format("{} lines; at most {} per request", call->line_count(), options_.max_lines), "text");
  TranslationTask task;
  task.translator = call->model.translator;
  task.client = exchange->request().client;
  task.decode = call->decode;
  task.prefixes = {call->prefix};
  task.deadline = std::chrono::steady_clock::now() + options_.timeout;
  task.lines = call->lines();
  check_lines(task.lines, "text");
  if (options_.log_text) {
    for (const std::string& text : call->texts) log::info("translate: {}", text);
  }
  task.line_done = [call](size_t line, const Translation& translation) {
    call->translations[line] = translation;
    const size_t text = call->text_of(line);
    if (call->partial) call->partial(text, call->text_so_far(text));
    if (call->line_done) call->line_done();
  };
  if (call->partial) {
    task.progress = [call](size_t line, const std::string& so_far) {
      const size_t text = call->text_of(line);
      call->unfinished[line] = so_far;
      call->partial(text, call->text_so_far(text));
    };
  }
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  // Terms are forced by searches of their own, with the same options.
  TranslationTask again;
  again.translator = task.translator;
  again.client = task.client;
  again.decode = task.decode;
  again.deadline = task.deadline;
  const auto check_time = [this, gone, deadline = task.deadline] { check_wanted(*gone, deadline); };
  const auto force = [this, call, again, check_time] {
    force_terms(
        call->glossary, *call->model.translator, call->translations,
        [&](const std::vector<std::string>& lines, const std::vector<std::string>& prefixes) {
          check_time();
          TranslationTask next = again;
          next.lines = lines;
          next.prefixes = prefixes;
          return engine_.translate(std::move(next));
        },
        call->prefix);
  };
  task.ended = [this, exchange, call, done, force, check_time](std::exception_ptr error) {
    if (error) return call->failed ? call->failed(error) : answer_error(exchange, error);
    const auto finish = [call, done, this, exchange, force, check_time] {
      try {
        if (!call->glossary.empty()) force();
        std::vector<json> all;
        for (size_t i = 0; i < call->texts.size(); ++i) {
          check_time();
          all.push_back(call->to_json(i));
        }
        done(std::move(all));
      } catch (const ClientLeft&) {  // nobody is there to be answered
      } catch (...) {
        call->failed ? call->failed(std::current_exception())
                     : answer_error(exchange, std::current_exception());
      }
    };
    call->needs_passes() || call->translations.size() > lines_answered_at_once ? in_background(finish)
                                                                               : finish();
  };
  if (task.lines.empty()) return task.ended(nullptr);  // nothing but tags
  const int64_t id = engine_.submit(std::move(task));
  exchange->on_gone([this, id, gone] {
    *gone = true;
    engine_.cancel(id);
  });
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
  call->glossary = Glossary(glossary_terms(body.take("glossary")));
  const std::string format = body.text("format", "text");
  if (format != "text" && format != "html" && format != "xml")
    throw ApiError(400, "format: expected text, html or xml", "format");
  if (format != "text") call->add_markup({format == "html"});
  call->options = {body.flag("words", false), body.flag("scores", false), body.flag("attention", false)};
  const bool stream = body.flag("stream", false);
  body.finish();
  const auto begin = std::chrono::steady_clock::now();
  const auto facts = [call, begin] {
    return json{{"model", call->model.name},
                {"precision", name_of(call->model.precision)},
                {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()}};
  };
  if (!stream) {
    return start(exchange, call, [exchange, facts](std::vector<json> translations) {
      json answer = facts();
      answer["translations"] = std::move(translations);
      exchange->respond({200, json_text(answer)});
    });
  }
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
    exchange->send(event("partial", {{"index", text}, {"text", so_far}}), fmt::format("partial {}", text));
  };
  call->failed = [exchange, open](std::exception_ptr error) {
    open();
    std::string message = "it failed";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& one) {
      message = one.what();
      message = message.substr(0, message.find("\nException raised from"));
    }
    exchange->send(event("error", {{"error", {{"message", message}}}}));
    exchange->end_stream();
  };
  start(exchange, call, [exchange, open, facts](std::vector<json> translations) {
    open();
    for (size_t i = 0; i < translations.size(); ++i) {
      translations[i]["index"] = i;
      exchange->send(event("translation", translations[i]));
    }
    exchange->send(event("done", facts()));
    exchange->end_stream();
  });
}

void Api::attention(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const ServedModel model = ready_model(body.text("model"), "");
  const Translator& translator = *model.translator;
  const ModelConfig& config = translator.decoder().config();
  const auto source = translator.tokenizer().encode(clean_text(body.required_text("source")));
  const auto target = translator.tokenizer().encode(clean_text(body.required_text("target")));
  const AttentionHead head{body.integer("layer", 0, config.layers - 1),
                           body.integer("head", 0, config.heads - 1)};
  body.finish();
  if (source.empty()) throw ApiError(400, "source: the text is empty", "source");
  if (translator.format().rows(static_cast<int64_t>(source.size()), static_cast<int64_t>(target.size())) >
      config.context_length)
    throw ApiError(
        413, fmt::format("the pair is longer than the model's context of {} tokens", config.context_length));
  const AttentionMap map =
      map_attention(translator.decoder(), translator.tokenizer(), translator.format(), source, target, head);
  exchange->respond({200, json_text({{"source_words", map.source},
                                     {"target_words", map.target},
                                     {"layers", config.layers},
                                     {"heads", config.heads},
                                     {"attention", map.weights}})});
}

void Api::alternatives(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const ServedModel model = ready_model(body.text("model"), "");
  const std::string source = clean_text(body.required_text("source")),
                    prefix = clean_text(body.text("prefix"));
  const int64_t count = body.integer("count", 1, 50).value_or(8);
  body.finish();
  const Translator& translator = *model.translator;
  const Tokenizer& tokenizer = translator.tokenizer();
  const auto source_tokens = tokenizer.encode(source);
  const std::vector<int32_t> prefix_tokens =
      prefix.empty() ? std::vector<int32_t>{} : tokenizer.encode(prefix);
  const int64_t rows = translator.format().rows(static_cast<int64_t>(source_tokens.size()),
                                                static_cast<int64_t>(prefix_tokens.size()));
  if (source_tokens.empty() || rows + 1 >= translator.decoder().config().context_length)
    throw ApiError(400, "source: empty, or too long for the model", "source");
  Candidates next;
  {
    const torch::NoGradGuard no_gradients;
    Batch batch;
    batch.add(translator.format(), source_tokens, prefix_tokens);
    const Layout layout = batch_layout(batch, translator.decoder().config());
    const torch::Tensor logits = translator.decoder().logits(index_tensor(batch.tokens), layout);
    next = top_candidates(logits.slice(0, logits.size(0) - 1).clone(), count, translator.forbidden(), {});
  }
  TranslationTask task;
  task.translator = model.translator;
  task.client = exchange->request().client;
  auto greedy = std::make_shared<DecodeConfig>(translator.config());
  greedy->beam = greedy->nbest = 1;
  greedy->split_tokens = 1'000'000;
  greedy->split_sentences = false;
  task.decode = greedy;
  task.deadline = std::chrono::steady_clock::now() + options_.timeout;
  std::vector<double> probabilities;
  for (size_t i = 0; i < next.tokens.size(); ++i) {
    if (next.tokens[i] < 0 || next.tokens[i] == translator.format().end) continue;
    std::vector<int32_t> begin = prefix_tokens;
    begin.push_back(next.tokens[i]);
    task.lines.push_back(source);
    task.prefixes.push_back(tokenizer.decode(begin));
    probabilities.push_back(std::exp(static_cast<double>(next.log_probabilities[i])));
  }
  const auto translations = engine_.translate(std::move(task));
  json all = json::array();
  for (size_t i = 0; i < translations.size(); ++i) {
    const std::string& text = translations[i].text();
    // What continues the last word of the prefix is no other word at this place.
    if (!text.starts_with(prefix.empty() ? "" : prefix + " ")) continue;
    const size_t from = prefix.empty() ? 0 : prefix.size() + 1;
    if (from >= text.size()) continue;
    const std::string word = text.substr(from, text.find(' ', from) - from);
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const json& one) { return one["word"] == word; });
    if (same != all.end()) {
      (*same)["probability"] = (*same)["probability"].get<double>() + probabilities[i];
    } else {
      all.push_back({{"word", word}, {"probability", probabilities[i]}, {"translation", text}});
    }
  }
  exchange->respond({200, json_text({{"alternatives", all}})});
}

// Scoring takes a while for long texts. It ends when nobody waits for it any more.
void Api::evaluate(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const std::string name = body.text("model");
  auto sources = body.texts("source");
  const auto references = body.texts("reference"), hypotheses = body.texts("hypothesis");
  body.finish();
  if (references.empty()) throw ApiError(400, "reference is missing", "reference");
  const size_t count = hypotheses.empty() ? sources.size() : hypotheses.size();
  if (count != references.size())
    throw ApiError(400,
                   fmt::format("{} {} and {} references", count,
                               hypotheses.empty() ? "sources" : "hypotheses", references.size()),
                   "reference");
  if (count > options_.max_texts)
    throw ApiError(413, fmt::format("at most {} texts per request", options_.max_texts), "reference");
  check_lines(references, "reference");
  check_lines(hypotheses, "hypothesis");
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  const auto score = [this, exchange, references, deadline](const std::vector<std::string>& translations) {
    const auto gone = std::make_shared<std::atomic<bool>>(false);
    exchange->on_gone([gone] { *gone = true; });
    answer_in_background(exchange, [=, this] {
      ScoredText text{translations, {}};
      for (const std::string& reference : references) text.references.push_back({reference});
      ScoringOptions scoring;
      scoring.resamples = 0;
      scoring.check = [&] { check_wanted(*gone, deadline); };
      const TextScores scores = score_text(text, scoring);
      json answer = {{"sentences", scores.sentences}, {"translations", translations}};
      for (const MetricScore& one : scores.metrics)
        answer[one.key] = {{"score", one.score}, {"signature", one.signature}};
      exchange->respond({200, json_text(answer)});
    });
  };
  if (!hypotheses.empty()) return score(hypotheses);
  auto call = std::make_shared<TranslateCall>();
  call->texts = std::move(sources);
  call->model = ready_model(name, "");
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  start(exchange, call, [score](const std::vector<json>& translations) {
    std::vector<std::string> texts;
    for (const json& one : translations) texts.push_back(one["text"].get<std::string>());
    score(texts);
  });
}

}  // namespace calque
