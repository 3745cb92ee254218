// Searcher: the search of one worker. It keeps its cache, and the common beginning of all prompts in it, from
// one call to the next.
#pragma once

#include <memory>
#include <vector>

#include "calque/decode/kv_cache.h"
#include "calque/decode/request_queue.h"
#include "calque/decode/search.h"
#include "calque/kernels/candidates.h"

namespace calque {

// A partial translation.
struct Beam {
  Hypothesis so_far;
  std::vector<int32_t> slots;  // cache slots of its target tokens
};

// One token more for one beam.
struct Choice {
  size_t beam;
  int32_t token;
  float log_probability;
  double total;
};

struct Sentence {
  SearchRequest request;
  const DecodeConfig* config = nullptr;
  int64_t max_tokens = 0;             // of the target
  std::vector<int32_t> prompt;        // tokens before the searched ones, a forced prefix included
  int64_t prefix_rows = 0;            // rows of the prompt that attend in both directions
  size_t first_query = 0;             // the separator's last row, which predicts the target's first token
  bool is_read = false;               // the prompt's rows are in the cache
  std::vector<int32_t> prompt_slots;  // the shared rows first
  std::vector<int32_t> target_slots;  // all that its beams ever took
  std::vector<Beam> beams;            // the most probable first
  size_t queried = 0, scored = 0;     // beams in the current pass, and beams whose choices are known
  std::vector<Choice> choices;        // of the scored beams
  std::vector<Hypothesis> ended;
  // Where several translations are wanted, the best is searched for alone, so that it is the same as without
  // a list; then once more for the others.
  int64_t wanted = 1;
  std::optional<Hypothesis> best = {};

  int64_t width() const { return config->sample ? config->nbest : config->beam; }
};

// The rows of one pass: where they are cached, and what each pair sees.
struct PassRows {
  std::vector<int32_t> slots, visible;
  std::vector<int64_t> visible_offsets = {0};
  std::vector<int64_t> prefix_lengths = {};
};

class Searcher {
 public:
  Searcher(const Decoder& decoder, const SearchOptions& options);

  // Searches until the queue is empty, with up to `most` sentences at a time; with `first` at the beginning,
  // so that other workers get their share.
  void run(RequestQueue& queue, int64_t first, int64_t most);
  // Drops what an exception left unfinished.
  void reset();

 private:
  void admit(RequestQueue& queue, int64_t most);
  void read_shared();
  size_t beams_to_query(const Sentence& sentence) const;
  int64_t position_of(const Sentence& sentence, size_t row) const;
  void step();
  torch::Tensor run(const std::vector<int64_t>& tokens, const Layout& layout, const PassRows& rows) const;
  void extend(Sentence& sentence, const Candidates& candidates, int64_t first_row);
  void grow(Sentence& sentence);
  void free_dead_slots(Sentence& sentence);
  bool cannot_win(const Sentence& sentence, const std::vector<Hypothesis>& ended,
                  const Hypothesis& so_far) const;
  void draw(Sentence& sentence, const torch::Tensor& logits, int64_t first_row,
            const std::vector<BannedToken>& bans);
  bool is_done(Sentence& sentence) const;
  bool begin_list(Sentence& sentence);
  void drop(size_t index);
  void deliver(Sentence& sentence, RequestQueue& queue);
  void give_back(Sentence& sentence);

  const Decoder& decoder_;
  const SearchOptions& options_;
  torch::Device device_;
  KvCache cache_;
  bool shared_is_read_ = false;
  std::vector<int32_t> shared_slots_;  // rows that every prompt begins with
  std::vector<char> is_alive_;         // scratch of free_dead_slots, by slot
  std::vector<std::unique_ptr<Sentence>> sentences_;
};

}  // namespace calque
