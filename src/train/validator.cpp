#include "calque/train/validator.h"

#include <chrono>
#include <cmath>

#include "calque/base/error.h"
#include "calque/model/batch_layout.h"
#include "calque/train/run_setup.h"

namespace calque {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

json ValidationResult::to_json() const {
  json all = {{"valid_loss", loss}, {"valid_perplexity", std::exp(loss)}, {"valid_seconds", seconds}};
  if (!bleu) return all;
  all["valid_bleu"] = *bleu;
  all["samples"] = json::array();
  for (const Sample& sample : samples) {
    all["samples"].push_back(
        {{"source", sample.source}, {"reference", sample.reference}, {"hypothesis", sample.hypothesis}});
  }
  return all;
}

Validator::Validator(const RunConfig& config, const Tokenizer& tokenizer, DataCache& cache)
    : tokenizer_(tokenizer), validation_(validation_batches(config, tokenizer, cache)) {
  if (!config.data.valid.empty() && !is_text(config.data.valid) && config.train.validate_sentences > 0)
    sentences_ = read_test_set(config.data.valid, "valid", config.train.validate_sentences);
}

ValidationResult Validator::validate(Trainer& trainer, int64_t first_sample) const {
  const auto started = Clock::now();
  ValidationResult result;
  result.loss = loss(trainer);
  if (sentences_) translate(trainer, first_sample, result);
  result.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  return result;
}

// Each rank computes every Nth batch. The sums of all batches are added up in their order, so that the number
// of ranks makes no difference.
double Validator::loss(Trainer& trainer) const {
  ProcessGroup& group = trainer.group();
  const auto& batches = validation_.batches;
  std::vector<double> sums(batches.size(), 0);
  double labels = 0;
  trainer.with_evaluation_model([&](const Decoder& decoder) {
    const torch::Device device = decoder.device();
    for (auto i = static_cast<size_t>(group.rank()); i < batches.size();
         i += static_cast<size_t>(group.size())) {
      const Batch& batch = batches[i];
      sums[i] = decoder
                    .loss(index_tensor(batch.tokens, device), batch_layout(batch, decoder.config(), device),
                          index_tensor(batch.labels, device), 0)
                    .plain.item<double>();
      group.note_progress();
    }
  });
  for (const Batch& batch : batches) labels += static_cast<double>(batch.labels.size());
  double sum = 0;
  for (const double one : group.sum(sums)) sum += one;  // zeros of the other ranks change nothing
  return sum / labels;
}

// Each rank translates every Nth sentence; all of them get all translations.
std::vector<std::string> Validator::translations(Trainer& trainer) const {
  ProcessGroup& group = trainer.group();
  std::vector<std::string> own;
  for (size_t i = static_cast<size_t>(group.rank()); i < sentences_->sources.size();
       i += static_cast<size_t>(group.size()))
    own.push_back(sentences_->sources[i]);
  ProcessGroup::Texts texts;
  trainer.with_evaluation_model([&](const Decoder& decoder) {
    DecodeConfig greedy;
    greedy.beam = 1;
    // A GPU translates with the weights as they are; the CPU's fast products need a packed copy.
    const auto model = decoder.device().is_cpu()
                           ? std::shared_ptr<const Decoder>(packed_copy(decoder, WeightPrecision::float32))
                           : std::shared_ptr<const Decoder>(std::shared_ptr<void>(), &decoder);
    try {
      for (const Translation& one : Translator(model, tokenizer_, greedy).translate_all(own))
        texts.push_back(one.text());
    } catch (const UserError&) {  // a training that has diverged: its loss says so
      texts.assign(own.size(), "");
    }
  });
  const auto by_rank = group.gather(texts);
  std::vector<std::string> all;
  for (size_t i = 0; i < sentences_->sources.size(); ++i)
    all.push_back(by_rank[i % by_rank.size()][i / by_rank.size()]);
  return all;
}

void Validator::translate(Trainer& trainer, int64_t first_sample, ValidationResult& result) const {
  ScoredText text;
  text.hypotheses = translations(trainer);
  for (const std::string& reference : sentences_->references) text.references.push_back({reference});
  ScoringOptions options;
  options.metrics = {"bleu"};
  options.resamples = 0;
  result.bleu = score_text(text, options).metrics.front().score;
  const auto count = static_cast<int64_t>(text.hypotheses.size());
  for (int64_t i = 0; i < std::min(samples_per_validation, count); ++i) {
    const auto at = static_cast<size_t>((first_sample + i) % count);
    result.samples.push_back({sentences_->sources[at], sentences_->references[at], text.hypotheses[at]});
  }
}

}  // namespace calque
