// calque as a library: load a trained run or checkpoint, translate, score, evaluate.
//
//   #include <calque/calque.h>
//   const calque::Model model = calque::Model::load("runs/demo");
//   std::cout << model.translate("Le chat dort.") << "\n";
//
// Nothing is printed, and nothing of the process is changed unless an option asks for it. Wrong input is a
// calque::Error. A Model may be used from one thread at a time; several models are independent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace calque {

// What the caller can put right: a model that is not there, a wrong option. help() says what to do.
class Error : public std::runtime_error {
 public:
  Error(const std::string& what, std::string help) : std::runtime_error(what), help_(std::move(help)) {}
  const std::string& help() const { return help_; }

 private:
  std::string help_;
};

struct LoadOptions {
  std::string precision = "float32";    // of the weights: float32, bfloat16, or int8, which is the fastest
  std::string device = "cpu";           // or cuda, cuda:1, mps, …; auto: a GPU if LibTorch has one
  std::filesystem::path runs = "runs";  // the folder in which the names of runs are looked up
  bool keep_freed_memory =
      false;        // keep freed memory for the next translation, process-wide: up to 10 % faster
  int threads = 0;  // processor threads of the whole process; 0: leave LibTorch's setting as it is
};

struct TranslateOptions {
  int64_t beam = 4;               // beam size; 1: greedy search
  int64_t nbest = 1;              // translations per sentence, at most `beam` of them
  double length_penalty = 0.6;    // scores are divided by ((5 + tokens) / 6)^length_penalty
  bool early_stopping = true;     // stop when `beam` translations have ended
  double max_length_ratio = 2;    // longest translation, as a multiple of the source's tokens …
  int64_t max_length_extra = 20;  // … plus this many
  int64_t no_repeat_ngram = 0;    // never repeat an n-gram of this many tokens; 0: off
  bool sample = false;            // sample tokens instead of searching for the best translation
  double temperature = 1;         // sampling temperature
  int64_t top_k = 0;              // sample from the k most probable tokens only; 0: all
  double top_p = 1;               // sample from the smallest set of tokens with this total probability
  int64_t seed = 1;               // random seed of sampling
  int64_t split_tokens = 48;      // split longer lines into sentences
  bool split_sentences = false;   // split every line into sentences
  int64_t batch = 64;             // sentences translated at the same time
  std::string prefix = {};        // text that every translation must begin with
};

// One translation of a line.
struct Candidate {
  std::string text;
  double score = 0;            // by which candidates are ranked: log p after the length penalty
  double log_probability = 0;  // of all tokens
  bool complete = true;        // false: cut off at the length limit
};

struct Scores {
  double bleu = 0, chrf = 0, ter = 0;  // as sacreBLEU computes them
  std::string bleu_signature, chrf_signature, ter_signature;
  std::vector<std::string> hypotheses;
};

class Model {
 public:
  // A run by its name or folder, or a checkpoint's folder.
  static Model load(const std::string& run_or_checkpoint, const LoadOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // The options that the run was configured with; those of every call that is given none.
  const TranslateOptions& default_options() const;

  std::string translate(const std::string& line) const;
  std::string translate(const std::string& line, const TranslateOptions& options) const;
  std::vector<std::string> translate(const std::vector<std::string>& lines) const;
  std::vector<std::string> translate(const std::vector<std::string>& lines,
                                     const TranslateOptions& options) const;
  // The n best translations of a line, the best first.
  std::vector<Candidate> candidates(const std::string& line, const TranslateOptions& options) const;
  // Lines as they come, without limit: `next` returns nothing at the end, `done` gets the translations in
  // order.
  void translate(const std::function<std::optional<std::string>()>& next,
                 const std::function<void(int64_t line, const std::string& translation)>& done,
                 const TranslateOptions& options) const;

  // log p(target | source), over all tokens and the end.
  double score(const std::string& source, const std::string& target) const;

  // Translates the sources and scores the result against the references.
  Scores evaluate(const std::vector<std::string>& sources, const std::vector<std::string>& references) const;
  Scores evaluate(const std::vector<std::string>& sources, const std::vector<std::string>& references,
                  const TranslateOptions& options) const;

  int64_t parameter_count() const;

 private:
  struct Parts;
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace calque
