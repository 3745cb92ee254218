#include "calque/data/batch_summary.h"

#include <fmt/format.h>

#include <chrono>

#include "calque/base/progress.h"
#include "calque/base/units.h"
#include "calque/data/prefetcher.h"

namespace calque {

BatchSummary summarise_batches(const BatchStreamOptions& options, const Tokenizer& tokenizer,
                               DataCache& cache) {
  BatchStream stream(options, tokenizer, cache, 0, 0);
  BatchSummary summary;
  summary.batches = stream.epoch_steps();
  summary.batch_tokens = options.batch_tokens;
  summary.vocabulary = tokenizer.size();
  const auto start = std::chrono::steady_clock::now();
  int64_t made = 0;
  Progress progress("making batches", summary.batches, "batches");
  Prefetcher prefetcher([&]() -> std::optional<Batch> {
    return made++ < summary.batches ? std::optional(stream.next()) : std::nullopt;
  });
  while (const auto batch = prefetcher.next()) {
    summary.tokens += batch->rows();
    summary.labels += static_cast<int64_t>(batch->labels.size());
    summary.pairs += batch->pairs();
    progress.advance(1);  // mutate: display only
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summary.tokens_per_second = static_cast<double>(summary.tokens) / summary.seconds;
  summary.fill =
      static_cast<double>(summary.tokens) / static_cast<double>(summary.batches * options.batch_tokens);
  return summary;
}

nlohmann::json BatchSummary::to_json() const {
  return {{"pairs", pairs},
          {"batches", batches},
          {"tokens", tokens},
          {"labels", labels},
          {"fill", fill},
          {"tokens_per_second", tokens_per_second},
          {"batch_tokens", batch_tokens},
          {"vocabulary", vocabulary}};
}

std::string BatchSummary::to_text() const {
  return fmt::format(
      "{} in {} of at most {} tokens; {} full on average, no padding\n"
      "{} tokens, of which {} contribute to the loss\n"
      "one epoch of batches made in {}: {} tokens per second\n",
      format_count(pairs, "pair"), format_count(batches) + (batches == 1 ? " batch" : " batches"),
      format_count(batch_tokens), format_share(fill), format_count(tokens), format_count(labels),
      format_seconds(seconds), format_count(static_cast<int64_t>(tokens_per_second)));
}

}  // namespace calque
