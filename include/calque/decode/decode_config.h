// DecodeConfig: how translations are searched for; the `decode` section of a configuration, and the flags of
// `calque translate`.
#pragma once

#include <cstdint>

#include "calque/base/field.h"

namespace calque {

struct DecodeConfig {
  int64_t beam = 4;
  int64_t nbest = 1;
  double length_penalty = 0.6;
  bool early_stopping = true;
  double max_length_ratio = 2;
  int64_t max_length_extra = 20;
  int64_t no_repeat_ngram = 0;
  bool sample = false;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  int64_t seed = 1;
  int64_t split_tokens = 48;
  bool split_sentences = false;
  int64_t batch = 64;
  std::filesystem::path shots;
};
Fields fields(DecodeConfig& config);
void check_decode(const DecodeConfig& config);

}  // namespace calque
