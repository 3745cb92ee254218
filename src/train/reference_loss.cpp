#include "calque/train/reference_loss.h"

#include <numbers>

#include "calque/base/unicode.h"
#include "calque/decode/scorer.h"
#include "calque/runs/evaluation.h"

namespace calque {

ReferenceLoss::ReferenceLoss(const Corpus& valid) {
  const TestSet pairs = read_test_set(valid, "data.valid", most_pairs);
  for (const std::string& source : pairs.sources) sources_.push_back(clean_text(source));
  for (const std::string& reference : pairs.references) references_.push_back(clean_text(reference));
}

void ReferenceLoss::require(const Tokenizer& tokenizer, const SequenceFormat& format,
                            int64_t context_length) {
  size_t kept = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto length = [&](const std::string& text) {
      return static_cast<int64_t>(tokenizer.encode(text).size());
    };
    if (format.rows(length(sources_[i]), length(references_[i])) > context_length) continue;
    sources_[kept] = sources_[i];
    references_[kept++] = references_[i];
  }
  left_out_ += static_cast<int64_t>(sources_.size() - kept);
  sources_.resize(kept);
  references_.resize(kept);
}

BitsPerByte ReferenceLoss::measure(const Translator& translator) const {
  std::vector<TokenPair> pairs;
  double bytes = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    pairs.push_back(
        {translator.tokenizer().encode(sources_[i]), translator.tokenizer().encode(references_[i])});
    bytes += static_cast<double>(references_[i].size());
  }
  double nats = 0, tokens = 0;
  for (const auto& scores : score_pairs(translator.decoder(), translator.format(), pairs)) {
    for (const float score : scores) nats -= score;
    tokens += static_cast<double>(scores.size());
  }
  return {nats / std::numbers::ln2 / bytes, tokens / bytes};
}

}  // namespace calque
