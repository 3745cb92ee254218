// Search: from source tokens to target tokens, by greedy search, beam search or sampling, with continuous
// batching: one flat pass computes the prompts of new sentences beside the last tokens of those in progress,
// and a finished sentence is replaced by the next one at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/decode/decode_config.h"
#include "calque/model/decoder.h"

namespace calque {

struct SearchRequest {
  int64_t id = 0;                    // chosen by the caller
  std::vector<int32_t> source;       // tokens, without control pieces
  std::vector<int32_t> prefix = {};  // tokens that the target must begin with
  std::shared_ptr<const std::vector<int32_t>> not_after_prefix =
      {};                                           // tokens that must not follow it at once
  std::shared_ptr<const DecodeConfig> decode = {};  // instead of the search's own; `batch` is not used
  std::optional<int64_t> random_stream = {};        // of sampling, instead of the id
};

struct Hypothesis {
  std::vector<int32_t> tokens;                 // of the target, with a forced prefix, without the end token
  std::vector<float> token_log_probabilities;  // of each searched token, then of the end token
  double log_probability = 0;                  // their sum
  double score = 0;                            // the sum after the length penalty, by which they are ranked
  bool ended = true;                           // false: cut off at the length limit

  // Of a part of a line that was copied instead of being searched for: it has no tokens at all, not even an
  // end.
  bool is_copied() const { return tokens.empty() && token_log_probabilities.empty(); }
};

// These are called from several threads, one at a time.
// The next request; nothing at the end or, unless `wait`, when none is available yet.
using NextRequest = std::function<std::optional<SearchRequest>(bool wait)>;
// The hypotheses of a request, the best first, as soon as they are known.
using RequestDone = std::function<void(int64_t id, std::vector<Hypothesis> hypotheses)>;
// The best tokens so far, after each pass; may be empty. Returning false cancels the request: its search ends
// without a result.
using RequestProgress = std::function<bool(int64_t id, std::span<const int32_t> tokens)>;

// Throws what a search and a scorer say of logits that are NaN or infinite: without it, a damaged model would
// translate everything as nothing.
[[noreturn]] void refuse_logits();

struct SearchOptions {
  DecodeConfig decode;
  SequenceFormat format;
  std::vector<int32_t> forbidden;  // tokens that no translation contains: control pieces
  const Hook* hook = nullptr;      // sees the intermediate tensors of every pass
};

// Changes whenever the same model may translate differently than before.
constexpr const char* search_version = "3";

// The longest source whose translation still fits into the context.
int64_t longest_source(const ModelConfig& model, const SequenceFormat& format);

class Searcher;

// The workers keep their caches from one run to the next, and in them the common beginning of all prompts.
class Search {
 public:
  // Keeps a reference to the decoder.
  Search(const Decoder& decoder, SearchOptions options);
  ~Search();

  void run(const NextRequest& next, const RequestDone& done, const RequestProgress& progress = {});
  DecodeConfig& config() { return options_.decode; }  // may change between runs

 private:
  const Decoder& decoder_;
  SearchOptions options_;
  std::vector<std::unique_ptr<Searcher>> workers_;
};

}  // namespace calque
