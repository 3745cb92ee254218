// AttentionMap: which words of the source each word of a translation looked at.
#pragma once

#include <string>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/data/tokenizer.h"

namespace calque {

class Decoder;

struct AttentionMap {
  std::vector<std::string> source;           // words
  std::vector<std::string> target;           // words, and the end
  std::vector<std::vector<double>> weights;  // [target][source], each row summing to 1
};

// The mean over all layers and heads of what the row that predicts a word sees of the source; of a word of
// several pieces, the mean over those that predict and the sum over those that are seen.
AttentionMap map_attention(const Decoder& decoder, const Tokenizer& tokenizer, const SequenceFormat& format,
                           const std::vector<int32_t>& source, const std::vector<int32_t>& target);

}  // namespace calque
