// Scorer: the log-probabilities that a model gives to existing translations, in flat batches.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/data/corpus.h"
#include "calque/data/sequence.h"
#include "calque/decode/translator.h"
#include "calque/model/decoder.h"

namespace calque {

struct TokenPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
};

// Per pair the log-probabilities of the target's tokens and of the end token, in order; empty for a pair that
// is longer than the model's context.
std::vector<std::vector<float>> score_pairs(const Decoder& decoder, const SequenceFormat& format,
                                            const std::vector<TokenPair>& pairs, const Hook* hook = nullptr);

// Mean negative log-probability per token, the end tokens included. NaN without any token.
double mean_loss(const Decoder& decoder, const SequenceFormat& format, const std::vector<TokenPair>& pairs,
                 const Hook* hook = nullptr);

// Scores lines of a corpus as they come, a block at a time.
struct ScoredPair {
  std::vector<std::string> tokens;  // pieces of the target, then </s>
  std::vector<float> log_probabilities;
  double log_probability() const;  // their sum

  nlohmann::json to_json() const;
  std::string to_text() const;  // log p, and log p per token
};
void score_lines(const Translator& translator, PairReader& reader,
                 const std::function<void(const ScoredPair& pair)>& done);

}  // namespace calque
