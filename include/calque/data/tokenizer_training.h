// Trains a tokenizer on a corpus: on source and target together, with at most train_lines sentences, spread
// evenly over the files.
#pragma once

#include "calque/data/corpus.h"
#include "calque/data/tokenizer.h"

namespace calque {

Tokenizer train_tokenizer(const TokenizerConfig& config, const Corpus& corpus,
                          int threads = 2);  // mutate: speed only

}  // namespace calque
