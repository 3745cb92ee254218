// Search: from source tokens to the best target tokens, by greedy or beam search or by sampling, for many
// sentences at a time. One flat pass makes a step for all that a worker has: the prompts of new sentences
// beside the last tokens of those under way. A sentence leaves when it is done, the next one takes its place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/decode/decode_config.h"
#include "calque/model/model_config.h"

namespace calque {

class Decoder;
class PackedDecoder;

struct SearchRequest {
  int64_t id = 0;                    // the caller's own
  std::vector<int32_t> source;       // tokens, nothing around them
  std::vector<int32_t> prefix = {};  // tokens that the target begins with
};

struct Hypothesis {
  std::vector<int32_t> tokens;                 // of the target, a forced prefix included, the end left out
  std::vector<float> token_log_probabilities;  // of each token found, then of the end; none for a prefix
  double log_probability = 0;                  // their sum
  double score = 0;                            // the sum after the length penalty: what the order goes by
  bool ended = true;                           // false: cut off at the greatest length
};

// These are called from several threads, one at a time.
// The next request; nothing when there are no more or, unless `wait`, none at this moment.
using NextRequest = std::function<std::optional<SearchRequest>(bool wait)>;
// The hypotheses of a request, the best first, as soon as they are known.
using RequestDone = std::function<void(int64_t id, std::vector<Hypothesis> hypotheses)>;
// The best tokens so far, after each step; may be empty. False stops the search.
using RequestProgress = std::function<bool(int64_t id, std::span<const int32_t> tokens)>;

struct SearchOptions {
  DecodeConfig decode;
  SequenceFormat format;
  std::vector<int32_t> forbidden;  // tokens that no translation holds: control pieces
};

// Changes whenever the same model may give other translations than before.
constexpr const char* search_version = "3";

// What is searched with: packed weights where there are any, else the decoder's own.
struct SearchModel {
  SearchModel(const Decoder& own, const PackedDecoder* laid_out = nullptr) : decoder(own), packed(laid_out) {}

  const Decoder& decoder;
  const PackedDecoder* packed;
};

// The most source tokens that a model has room for together with a translation of them.
int64_t longest_source(const ModelConfig& model, const SequenceFormat& format);

void search(const SearchModel& model, const SearchOptions& options, const NextRequest& next,
            const RequestDone& done, const RequestProgress& progress = {});

}  // namespace calque
