// The routes that look into a translation (attention, alternatives) or score it.
#include <algorithm>
#include <cmath>

#include "api_json.h"
#include "background.h"
#include "calque/base/unicode.h"
#include "calque/data/batch.h"
#include "calque/decode/attention_map.h"
#include "calque/kernels/candidates.h"
#include "calque/metrics/text_scores.h"
#include "calque/model/batch_layout.h"
#include "translate_call.h"

namespace calque {

namespace {

// The most probable tokens after a source and the beginning of its translation.
Candidates next_tokens(const Translator& translator, const std::vector<int32_t>& source,
                       const std::vector<int32_t>& prefix, int64_t count) {
  const torch::NoGradGuard no_gradients;
  Batch batch;
  batch.add(translator.format(), source, prefix);
  const Layout layout = batch_layout(batch, translator.decoder().config());
  const torch::Tensor logits = translator.decoder().logits(index_tensor(batch.tokens), layout);
  return top_candidates(logits.slice(0, logits.size(0) - 1).clone(), count, translator.forbidden(), {});
}

// The words that follow the prefix in the translations. Several tokens may begin the same word.
std::vector<AlternativeAnswer> words_after(const std::string& prefix,
                                           const std::vector<Translation>& translations,
                                           const std::vector<double>& probabilities) {
  const std::string beginning = prefix.empty() ? "" : prefix + " ";
  std::vector<AlternativeAnswer> all;
  for (size_t i = 0; i < translations.size(); ++i) {
    const std::string& text = translations[i].text();
    // What continues the last word of the prefix is no other word at this place.
    if (!text.starts_with(beginning) || text.size() == beginning.size()) continue;
    const std::string word =
        text.substr(beginning.size(), text.find(' ', beginning.size()) - beginning.size());
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const AlternativeAnswer& one) { return one.word == word; });
    if (same != all.end()) {
      same->probability += probabilities[i];
    } else {
      all.push_back({word, probabilities[i], text});
    }
  }
  return all;
}

MetricAnswer metric_answer(const TextScores& scores, const std::string& key) {
  const MetricScore& found = *scores.find(key);
  return {found.score, found.signature};
}

}  // namespace

void Api::attention(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const std::string name = body.text("model");
  const ServedModel model = ready_model(name, body.text("precision"));
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
  exchange->respond({200, json_text(json_of(AttentionAnswer{map.source, map.target, config.layers,
                                                            config.heads, map.weights}))});
}

void Api::alternatives(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const std::string name = body.text("model");
  const ServedModel model = ready_model(name, body.text("precision"));
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
  const Candidates next = next_tokens(translator, source_tokens, prefix_tokens, count);
  TranslationTask task;
  task.translator = model.translator;
  task.client = exchange->request().client;
  auto greedy = std::make_shared<DecodeConfig>(translator.config());
  greedy->beam = greedy->nbest = 1;
  greedy->split_tokens = 1'000'000;
  greedy->split_sentences = false;
  task.decode = greedy;
  task.deadline = deadline_of(exchange);
  std::vector<double> probabilities;
  for (size_t i = 0; i < next.tokens.size(); ++i) {
    if (next.tokens[i] < 0 || next.tokens[i] == translator.format().end) continue;
    std::vector<int32_t> begin = prefix_tokens;
    begin.push_back(next.tokens[i]);
    task.lines.push_back(source);
    task.prefixes.push_back(tokenizer.decode(begin));
    probabilities.push_back(std::exp(static_cast<double>(next.log_probabilities[i])));
  }
  const auto translations = engine_.translate(std::move(task), check_of(exchange));
  exchange->respond(
      {200, json_text(json_of(AlternativesAnswer{words_after(prefix, translations, probabilities)}))});
}

// Scoring takes a while for long texts. It ends when nobody waits for it any more.
void Api::evaluate(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const std::string name = body.text("model"), precision = body.text("precision");
  auto sources = body.texts("source");
  const auto references = body.texts("reference");
  auto hypotheses = body.texts("hypothesis");
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
  background_->check_room(exchange->request().client);
  const auto text = std::make_shared<ScoredText>();
  for (const std::string& reference : references) text->references.push_back({reference});
  const auto score = [this, exchange, text](std::vector<std::string> translations) {
    text->hypotheses = std::move(translations);
    answer_in_background(exchange, [exchange, text](const Check& check) {
      ScoringOptions scoring;
      scoring.resamples = 0;
      scoring.check = check;
      const TextScores scores = score_text(*text, scoring);
      exchange->respond(
          {200, json_text(json_of(EvaluationAnswer{
                    scores.sentences, std::move(text->hypotheses), metric_answer(scores, "bleu"),
                    metric_answer(scores, "chrf"), metric_answer(scores, "ter")}))});
    });
  };
  if (!hypotheses.empty()) return score(std::move(hypotheses));
  auto call = std::make_shared<TranslateCall>();
  call->texts = std::move(sources);
  call->model = ready_model(name, precision);
  call->decode = std::make_shared<DecodeConfig>(call->model.translator->config());
  start(exchange, call, [score](std::vector<TextAnswer> translations) {
    std::vector<std::string> texts;
    for (TextAnswer& one : translations) texts.push_back(std::move(one.text));
    score(std::move(texts));
  });
}

}  // namespace calque
