// Initial token embeddings, made from which tokens occur together: in one pair, and side by side. Tokens in
// similar company, such as translations of each other, start out with similar vectors, which training would
// otherwise have to find out first.
//
// The matrix of positive pointwise mutual information is factored (Levy and Goldberg, 2014): its leading
// singular vectors, by a randomised method (Halko et al., 2011).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "calque/data/corpus.h"
#include "calque/data/tokenizer.h"
#include "calque/model/decoder.h"

namespace calque {

struct TokenisedPairs {
  std::vector<int32_t> tokens;
  std::vector<int64_t> sentences, pairs;  // where each ends in `tokens`
};
// At most `most_pairs` pairs, or lines of a text, spread evenly over the corpus, without those of more than
// `max_tokens` tokens.
TokenisedPairs tokenise_pairs(const Corpus& corpus, const Tokenizer& tokenizer, int64_t max_tokens,
                              int64_t most_pairs);

// [vocabulary, size], float32: rows of norm 1, or 0 for tokens that do not occur, or with all others alike.
// The same bits for any number of threads.
torch::Tensor cooccurrence_vectors(const TokenisedPairs& pairs, int64_t vocabulary, int64_t size,
                                   uint64_t seed);

// Gives every token its vector, as long as its random one was; one without a vector keeps that.
void initialise_embeddings(Decoder& decoder, const Corpus& corpus, const Tokenizer& tokenizer,
                           int64_t max_tokens, uint64_t seed);

}  // namespace calque
