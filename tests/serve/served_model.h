// The small model that the server's tests use.
#pragma once

#include <memory>

#include "calque/decode/translator.h"
#include "tiny_model.h"

namespace calque {

inline std::shared_ptr<Translator> tiny_translator(uint64_t seed = 1) {
  const Tokenizer tokenizer =
      Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/bpe.model");
  ModelConfig model = tiny_config(tokenizer.size());
  model.context_length = 96;
  const auto decoder = make_decoder(model, seed);
  decoder->pack(WeightPrecision::float32);
  DecodeConfig config;
  config.beam = 2;
  config.max_length_ratio = 0.2;
  config.max_length_extra = 2;  // too short for a loop, which is searched for again
  return std::make_shared<Translator>(decoder, tokenizer, config);
}

}  // namespace calque
