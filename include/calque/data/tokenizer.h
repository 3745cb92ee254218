// Tokenizer: encodes text to token ids and decodes it. calque trains SentencePiece models on both languages
// together, with the control tokens <s>, </s> and <sep> and byte fallback. Imported models may use byte-level
// BPE instead; the kind is detected from the file's content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/field.h"
#include "calque/data/tokenizer_model.h"

namespace calque {

enum class TokenizerKind { bpe, unigram };
template <>
struct EnumNames<TokenizerKind> {
  static constexpr std::string_view names[] = {"bpe", "unigram"};
};

struct TokenizerConfig {
  std::filesystem::path path;
  int64_t vocabulary = 8000;
  TokenizerKind kind = TokenizerKind::bpe;
  bool nfkc = true;
  double character_coverage = 0.9995;
  int64_t train_lines = 2'000'000;
  double sampling = 0;
};
Fields fields(TokenizerConfig& config);

// Writes the next line of training text to `line`; returns false at the end.
using LineSource = std::function<bool(std::string& line)>;

class Tokenizer {
 public:
  static Tokenizer load(const std::filesystem::path& path);
  static Tokenizer from_bytes(std::string model, const std::string& name);
  // Deterministic: the same lines and options give the same model, byte for byte.
  static Tokenizer train(const TokenizerConfig& config, const LineSource& lines,
                         int threads = 2);  // mutate: speed only

  std::vector<int32_t> encode(std::string_view text) const;
  // A random segmentation: BPE-dropout (Provilkov et al., 2020) with probability `sampling`, or a sample from
  // the unigram model (Kudo, 2018) with smoothing `sampling`. A pure function of the text and `seed`.
  std::vector<int32_t> encode_sampled(std::string_view text, double sampling, uint64_t seed) const;
  bool encodes_words_apart() const { return pieces_->encodes_words_apart(); }  // see TokenizerModel
  std::string decode(std::span<const int32_t> ids) const;                      // control tokens are left out

  int32_t size() const { return pieces_->size(); }
  const std::string& piece(int32_t id) const { return pieces_->piece(id); }
  std::optional<int32_t> find(std::string_view piece) const { return pieces_->find(piece); }
  bool is_byte(int32_t id) const { return pieces_->is_byte(id); }
  bool is_control(int32_t id) const { return pieces_->is_control(id); }
  bool begins_word(int32_t id) const { return pieces_->begins_word(id); }
  int32_t unknown_id() const { return pieces_->unknown_id(); }
  int32_t begin_id() const { return pieces_->begin_id(); }
  int32_t end_id() const { return pieces_->end_id(); }
  std::optional<int32_t> separator_id() const { return separator_; }
  const TokenizerModel& pieces() const { return *pieces_; }

  uint64_t hash() const { return hash_; }
  const std::string& serialized() const { return model_; }  // the bytes of the model file
  const char* file_name() const { return pieces_->file_name(); }

 private:
  Tokenizer(std::string model, const std::string& name);

  std::string model_;
  std::shared_ptr<const TokenizerModel> pieces_;
  uint64_t hash_;
  std::optional<int32_t> separator_;
};

}  // namespace calque
