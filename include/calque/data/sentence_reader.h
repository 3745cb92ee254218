// SentenceReader: the sentences of a corpus one after another, cleaned as the models see them; for each pair
// the source, then the target. What a tokenizer is trained on, and what a vocabulary is pruned to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "calque/data/corpus.h"

namespace calque {

class SentenceReader {
 public:
  // Only every `stride`-th pair is used.
  explicit SentenceReader(Corpus corpus, int64_t stride = 1);
  bool next(std::string& sentence);  // false at the end

 private:
  Corpus corpus_;
  int64_t stride_;
  size_t part_ = 0;
  int64_t count_ = 0;
  std::unique_ptr<PairReader> reader_;
  std::string target_;  // of the pair whose source was returned last
};

}  // namespace calque
