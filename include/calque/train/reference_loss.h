// ReferenceLoss: how well a model predicts the references of a validation set, in bits per byte of their
// text. Losses per token cannot be compared between vocabularies: a larger one has fewer tokens to predict,
// each of them harder. Bytes are the same for all, as long as the pairs are: those that are too long for one
// model are left out for all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calque/data/corpus.h"
#include "calque/decode/translator.h"

namespace calque {

struct BitsPerByte {
  double bits_per_byte = 0;
  double tokens_per_byte = 0;  // end tokens included
};

class ReferenceLoss {
 public:
  static constexpr int64_t most_pairs = 2000;  // of a larger set, spread over the whole

  explicit ReferenceLoss(const Corpus& valid);

  // Leaves out the pairs that do not fit the context of a model with this tokenizer and format.
  void require(const Tokenizer& tokenizer, const SequenceFormat& format, int64_t context_length);

  BitsPerByte measure(const Translator& translator) const;

  int64_t pairs() const { return static_cast<int64_t>(sources_.size()); }
  int64_t left_out() const { return left_out_; }

 private:
  std::vector<std::string> sources_, references_;
  int64_t left_out_ = 0;
};

}  // namespace calque
