// AttentionMap: how much each word of a translation attended to each word of the source.
#pragma once

#include <optional>
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

  // The weights, each relative to the mean over the target of its source word. Every word attends a lot to
  // some source words (attention sinks); which word belongs to which shows against that background.
  std::vector<std::vector<double>> alignment() const;
};

// Which attention to look at; nothing: the mean over all.
struct AttentionHead {
  std::optional<int64_t> layer = {}, head = {};
};

// The attention of the row that predicts a word. For words of several tokens: the mean over the predicting
// rows, the sum over the source tokens.
AttentionMap map_attention(const Decoder& decoder, const Tokenizer& tokenizer, const SequenceFormat& format,
                           const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                           const AttentionHead& which = {});

}  // namespace calque
