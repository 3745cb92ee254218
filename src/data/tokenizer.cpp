#include "calque/data/tokenizer.h"

#include <sentencepiece_trainer.h>

#include <random>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/units.h"

// SentencePiece's generator, one a thread. Its public way to seed it works once a thread only; drawing must
// be a pure function of a seed here, so it is reached by its (exported) internal name.
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

}  // namespace

Fields fields(TokenizerConfig& c) {
  return {
      field("path", c.path, "an existing SentencePiece model; empty: one is trained from data.train"),
      field("vocabulary", c.vocabulary, between(264, 1'000'000),
            "pieces to learn, control pieces and 256 bytes included"),
      field("kind", c.kind, "how pieces are learnt"),
      field("nfkc", c.nfkc, "normalise to Unicode NFKC; false: keep the text as it is"),
      field("character_coverage", c.character_coverage, between(0.9, 1.0),
            "share of characters with a piece of their own; the rest become bytes"),
      field("train_lines", c.train_lines, at_least(1), "lines to learn from at most, spread over the corpus"),
      field("sampling", c.sampling, from_below(0.0, 1.0),
            "BPE-dropout, or unigram smoothing, while training a model; 0: none"),
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

Tokenizer Tokenizer::train(const TokenizerConfig& config, const LineSource& lines) {
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
      {"num_threads", "2"},
  };
  sentencepiece::random::GetRandomGenerator()->seed(1);
  Lines iterator(lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model);
  if (!status.ok()) {
    throw UserError(fmt::format("the tokenizer cannot be trained with tokenizer.vocabulary={}: {}",
                                config.vocabulary, status.error_message()),
                    "a small corpus needs a smaller vocabulary");
  }
  return {std::move(model), "trained tokenizer"};
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const { return pieces_->encode(text); }

std::vector<int32_t> Tokenizer::encode_sampled(std::string_view text, double sampling, uint64_t seed) const {
  return pieces_->encode_sampled(text, sampling, seed);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= size())
      throw UserError(fmt::format("{} is no piece; ids go from 0 to {}", id, size() - 1));
  }
  return pieces_->decode(ids);
}

}  // namespace calque
