#include "calque/data/tokenizer.h"

#include <sentencepiece_processor.h>
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
    : model_(std::move(model)), hash_(hash_bytes(model_)) {
  auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (model_.empty() || !processor->LoadFromSerializedProto(model_).ok()) {
    throw UserError(fmt::format("{}: not a SentencePiece model", name), "`calque tokenizer train` makes one");
  }
  unknown_ = processor->unk_id();
  begin_ = processor->bos_id();
  end_ = processor->eos_id();
  if (begin_ < 0 || end_ < 0) {
    throw UserError(fmt::format("{}: the model has no {} piece", name, begin_ < 0 ? "<s>" : "</s>"),
                    "train it with both; `calque tokenizer train` does");
  }
  processor_ = std::move(processor);
  separator_ = find("<sep>");
}

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

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  const auto status = processor_->Encode(text, &ids);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return ids;
}

std::vector<int32_t> Tokenizer::encode_sampled(std::string_view text, double sampling, uint64_t seed) const {
  sentencepiece::random::GetRandomGenerator()->seed(
      static_cast<std::mt19937::result_type>(mix(seed, 0x5A4D)));
  std::vector<int32_t> ids;
  const auto status = processor_->SampleEncode(text, -1, static_cast<float>(sampling), &ids);
  if (!status.ok())
    throw UserError(fmt::format("this tokenizer cannot sample: {}", status.error_message()),
                    "tokenizer.sampling=0");
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<int> known;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size())
      throw UserError(fmt::format("{} is no piece; ids go from 0 to {}", id, size() - 1));
    known.push_back(id);
  }
  std::string text;
  const auto status = processor_->Decode(known, &text);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return text;
}

int32_t Tokenizer::size() const { return processor_->GetPieceSize(); }

const std::string& Tokenizer::piece(int32_t id) const { return processor_->IdToPiece(id); }

std::optional<int32_t> Tokenizer::find(std::string_view piece) const {
  const int id = processor_->PieceToId(piece);
  return id == unknown_ && piece != processor_->IdToPiece(unknown_) ? std::nullopt
                                                                    : std::optional<int32_t>(id);
}

bool Tokenizer::is_byte(int32_t id) const { return processor_->IsByte(id); }
bool Tokenizer::is_control(int32_t id) const { return processor_->IsControl(id); }

}  // namespace calque
