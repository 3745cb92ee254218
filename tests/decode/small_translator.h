// A translator with a small model of random weights, shared by tests.
#pragma once

#include "calque/decode/translator.h"
#include "temporary_folder.h"
#include "tiny_model.h"

namespace calque {

inline Tokenizer golden_tokenizer() {
  return Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model");
}

inline Translator make_translator(int64_t split_tokens = 48) {
  const Tokenizer tokenizer = golden_tokenizer();
  ModelConfig model = tiny_config(tokenizer.size());
  model.context_length = 128;
  const auto decoder = make_decoder(model);
  decoder->pack(WeightPrecision::float32);
  DecodeConfig config;
  config.beam = 2;
  config.max_length_ratio = 0.5;
  config.max_length_extra = 3;
  config.split_tokens = split_tokens;
  return {decoder, tokenizer, config};
}

// A model whose output does not depend on its input: the tokens in the order of their preference, from
// `first` on. It ends never, since the end token comes last.
inline std::shared_ptr<Decoder> stubborn_decoder(int64_t vocabulary, int64_t first,
                                                 int64_t context_length = 64) {
  ModelConfig config = tiny_config(vocabulary);
  config.architecture = Architecture::calque;
  config.norm = NormKind::layer;
  config.tied_embeddings = false;
  config.context_length = context_length;
  const auto decoder = make_decoder(config);
  const torch::NoGradGuard no_gradients;
  decoder->norm->weight.zero_();
  decoder->norm->bias.fill_(1);
  decoder->output.zero_();
  for (int64_t i = 0; first + i < vocabulary; ++i)
    decoder->output[first + i].fill_(1 - 0.01 * static_cast<double>(i));
  return decoder;
}

}  // namespace calque
