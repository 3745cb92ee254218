#include "calque/data/tokenizer.h"

#include <sentencepiece_trainer.h>

#include <random>
#include <regex>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/units.h"

// SentencePiece's random generator, one per thread. Its public API can seed it only once per thread. Training
// must be deterministic, so we access the generator by its internal (but exported) name.
namespace sentencepiece::random {
std::mt19937* GetRandomGenerator();
}

namespace calque {
namespace {

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const LineSource& source) : source_(source) { Next(); }
  bool done() const override { return done_; }
  void Next() override { done_ = !source_(line_); }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const LineSource& source_;
  std::string line_;
  bool done_ = false;
};

// SentencePiece's two refusals of a vocabulary, in terms of our keys.
UserError training_error(const TokenizerConfig& config, const std::string& reason) {
  std::smatch found;
  if (std::regex_search(reason, found, std::regex("too high .*set it to a value <= ([0-9]+)"))) {
    return UserError(
        fmt::format("tokenizer.vocabulary={} is too large: the corpus has text for a vocabulary of {}",
                    config.vocabulary, found.str(1)),
        fmt::format("set tokenizer.vocabulary={} or less, or add text", found.str(1)));
  }
  if (std::regex_search(reason, found, std::regex("smaller than required_chars. [0-9]+ vs ([0-9]+)"))) {
    return UserError(fmt::format("tokenizer.vocabulary={} is too small: the characters of the corpus alone "
                                 "need a vocabulary of {}",
                                 config.vocabulary, found.str(1)),
                     fmt::format("set tokenizer.vocabulary={} or more, or lower tokenizer.character_coverage",
                                 found.str(1)));
  }
  return UserError(
      fmt::format("the tokenizer cannot be trained with tokenizer.vocabulary={}", config.vocabulary), reason);
}

}  // namespace

Fields fields(TokenizerConfig& c) {
  return {
      field("path", c.path, "existing SentencePiece model or tokenizer.json; empty: train one on data.train"),
      field("vocabulary", c.vocabulary, between(264, 1'000'000),
            "vocabulary size, including control tokens and 256 byte tokens"),
      field("kind", c.kind, "algorithm of the tokenizer"),
      field("nfkc", c.nfkc, "normalise text to Unicode NFKC; false: no normalisation"),
      field("character_coverage", c.character_coverage, between(0.9, 1.0),
            "share of characters that get their own token; the rest use byte fallback"),
      field("train_lines", c.train_lines, at_least(1),
            "maximum number of sentences to train on, spread over the corpus"),
      field("sampling", c.sampling, from_below(0.0, 1.0),
            "BPE-dropout probability, or unigram smoothing, while a model is trained; 0: off"),
  };
}

Tokenizer::Tokenizer(std::string model, const std::string& name)
    : model_(std::move(model)),
      pieces_(model_.starts_with('{') ? make_byte_level_bpe(model_, name)
                                      : make_sentence_piece_model(model_, name)),
      hash_(hash_bytes(model_)),
      separator_(find("<sep>")) {}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return from_bytes(read_file(path), path.string());
}

Tokenizer Tokenizer::from_bytes(std::string model, const std::string& name) {
  return {std::move(model), name};
}

Tokenizer Tokenizer::train(const TokenizerConfig& config, const LineSource& lines, int threads) {
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", std::string(name_of(config.kind))},
      {"vocab_size", std::to_string(config.vocabulary)},
      {"character_coverage", format_shortest(config.character_coverage)},
      {"normalization_rule_name", config.nfkc ? "nfkc" : "identity"},
      {"byte_fallback", "true"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"control_symbols", "<sep>"},
      {"minloglevel", "2"},
      {"max_sentence_length", "65536"},
      {"num_threads", std::to_string(threads)},
  };
  sentencepiece::random::GetRandomGenerator()->seed(1);  // mutate: any seed
  Lines iterator(lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model);
  if (!status.ok()) throw training_error(config, status.error_message());
  return {std::move(model), "trained tokenizer"};
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const { return pieces_->encode(text); }

std::vector<int32_t> Tokenizer::encode_sampled(std::string_view text, double sampling, uint64_t seed) const {
  return pieces_->encode_sampled(text, sampling, seed);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= size())
      throw UserError(fmt::format("{} is not a valid token id; expected 0 to {}", id, size() - 1));
  }
  return pieces_->decode(ids);
}

}  // namespace calque
