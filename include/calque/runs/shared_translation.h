// SharedTranslation: lines translated by all ranks of a group. Rank 0 reads them and gets every result, in
// order; the others work for it. The results are those of one rank: a translation does not depend on what is
// translated beside it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calque/decode/translator.h"
#include "calque/distributed/process_group.h"
#include "calque/runs/model_source.h"

namespace calque {

struct TranslatedLine {
  std::string text;
  bool complete = true;  // false: cut off at the length limit
  bool looped = false;   // it repeated itself and was searched for again
  bool copied = false;   // a word too long for the model was copied
  bool cut = false;      // a sentence too long for the model was cut between words
  int64_t tokens = 0;
};

class SharedTranslation {
 public:
  // The text to keep of a translation, made by the rank that translated it.
  using Render = std::function<std::string(int64_t line, const Translation& translation)>;
  using Done = std::function<void(int64_t line, const TranslatedLine& translated)>;

  // Keeps references to the translator and the group. All ranks have the same model, search and `render`.
  SharedTranslation(const Translator& translator, ProcessGroup& group, Render render,
                    std::string prefix = "");
  ~SharedTranslation();  // on rank 0: lets the others return, or fail if an exception is on its way
  SharedTranslation(const SharedTranslation&) = delete;
  SharedTranslation& operator=(const SharedTranslation&) = delete;

  // On rank 0. Alone, lines are delivered as soon as possible; otherwise in blocks.
  void run(const NextLine& next, const Done& done);
  // On the other ranks: translates what rank 0 hands out, until it has no more. Whatever is thrown on one
  // rank while they work is thrown on all.
  void work();

 private:
  void run_blocks(const NextLine& next, const Done& done);
  void end(const std::string& reason);
  TranslatedLine summarise(int64_t line, const Translation& translation) const;
  std::vector<TranslatedLine> translate_share(const std::vector<std::string>& lines,
                                              int64_t first_line) const;

  const Translator& translator_;
  ProcessGroup& group_;
  Render render_;
  std::string prefix_;
  bool ended_ = false;  // the others know that there is no more
  int exceptions_;      // that were on their way when it was made
};

// Opens the same model on all ranks: a UserError on each if one has other weights, another precision or other
// settings of the search, or if a checkpoint changes while it is read.
std::unique_ptr<Translator> open_on_all(ProcessGroup& group, const ModelSource& source,
                                        const std::function<std::unique_ptr<Translator>()>& open);

}  // namespace calque
