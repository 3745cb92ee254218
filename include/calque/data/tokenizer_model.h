// TokenizerModel: what a tokenizer of one kind can do. Tokenizer holds one and is what everybody else sees.
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
  virtual std::string decode(std::span<const int32_t> ids) const = 0;  // ids are known to be in range

  virtual int32_t size() const = 0;
  virtual const std::string& piece(int32_t id) const = 0;
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual bool is_byte(int32_t id) const = 0;
  virtual bool is_control(int32_t id) const = 0;
  virtual bool begins_word(int32_t id) const = 0;
  virtual int32_t unknown_id() const = 0;  // -1 where nothing can be unknown
  virtual int32_t begin_id() const = 0;
  virtual int32_t end_id() const = 0;
  virtual const char* file_name() const = 0;  // what its file is called in a checkpoint

  // The same tokenizer with these pieces alone, in this order, and its bytes; pieces that others are made of
  // must be among them.
  virtual std::string pruned(std::span<const int32_t> kept) const = 0;
  // Every piece that encoding `id`'s own text passes through, itself included.
  virtual std::vector<int32_t> parts_of(int32_t id) const = 0;
};

// A tokenizer.json says which pieces begin and end a text in its post-processor: a template that puts the
// first before a text and knows the other. `tokenizers` reads it too. `file` must hold both ids.
void set_begin_and_end(nlohmann::json& file, int64_t begin, int64_t end);

// `name` stands for the file in messages.
std::shared_ptr<const TokenizerModel> make_sentence_piece_model(const std::string& bytes,
                                                                const std::string& name);
std::shared_ptr<const TokenizerModel> make_byte_level_bpe(const std::string& json, const std::string& name);

}  // namespace calque
