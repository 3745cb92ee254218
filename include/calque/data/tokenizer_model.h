// TokenizerModel: the interface of one kind of tokenizer (SentencePiece or byte-level BPE). Other code uses
// the class Tokenizer, which owns one.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;

  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  virtual std::vector<int32_t> encode_sampled(std::string_view text, double sampling,
                                              uint64_t seed) const = 0;
  // Whether encode(text) is always encode() of its words, which are split at spaces, one after another. Texts
  // with the character U+2581 (a space in SentencePiece's pieces) are excepted.
  virtual bool encodes_words_apart() const { return false; }
  virtual std::string decode(std::span<const int32_t> ids) const = 0;  // all ids must be in range

  virtual int32_t size() const = 0;
  virtual const std::string& piece(int32_t id) const = 0;
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual bool is_byte(int32_t id) const = 0;
  virtual bool is_control(int32_t id) const = 0;
  virtual bool begins_word(int32_t id) const = 0;
  virtual int32_t unknown_id() const = 0;  // -1 if there is no unknown token
  virtual int32_t begin_id() const = 0;
  virtual int32_t end_id() const = 0;
  virtual const char* file_name() const = 0;  // name of its file in a checkpoint

  // The bytes of the same tokenizer with only the pieces `kept`, in this order. For each kept piece, the
  // pieces it is merged from (parts_of) must be kept too.
  virtual std::string pruned(std::span<const int32_t> kept) const = 0;
  // The piece `id` itself, and all pieces that occur while BPE merges its text from single characters.
  virtual std::vector<int32_t> parts_of(int32_t id) const = 0;
};

// Stores the begin and end tokens in a tokenizer.json, as a post-processor of type TemplateProcessing that
// puts `begin` before a text and lists both tokens. Hugging Face's tokenizers library can read it. `file`
// must contain tokens with both ids.
void set_begin_and_end(nlohmann::json& file, int64_t begin, int64_t end);

// Messages use `name` as the file name.
std::shared_ptr<const TokenizerModel> make_sentence_piece_model(const std::string& bytes,
                                                                const std::string& name);
std::shared_ptr<const TokenizerModel> make_byte_level_bpe(const std::string& json, const std::string& name);

}  // namespace calque
