// Training a tokenizer from a corpus: both sides together, at most so many lines, spread evenly over the
// files.
#pragma once

#include "calque/data/corpus.h"
#include "calque/data/tokenizer.h"

namespace calque {

Tokenizer train_tokenizer(const TokenizerConfig& config, const Corpus& corpus);

}  // namespace calque
