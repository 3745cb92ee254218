// SentencePieceModel: the TokenizerModel of SentencePiece models.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <limits>
#include <random>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/text.h"
#include "calque/data/sentence_piece_file.h"
#include "calque/data/tokenizer_model.h"
#include "sentence_piece_check.h"

// SentencePiece's random generator, one per thread. Its public API can seed it only once per thread. Sampling
// must be a pure function of the seed, so we access the generator by its internal (but exported) name.
namespace sentencepiece::random {
std::mt19937* GetRandomGenerator();
}

namespace calque {
namespace {

class SentencePieceModel : public TokenizerModel {
 public:
  SentencePieceModel(const std::string& bytes, const std::string& name) : bytes_(bytes) {
    check_sentence_piece(bytes, name);
    const auto status = processor_.LoadFromSerializedProto(bytes);
    if (!status.ok()) {
      throw UserError(fmt::format("{}: not a SentencePiece model: {}", name, shorten(status.ToString(), 200)),
                      "`calque tokenizer train` creates one");
    }
    if (begin_id() < 0 || end_id() < 0) {
      throw UserError(fmt::format("{}: the model has no {} token", name, begin_id() < 0 ? "<s>" : "</s>"),
                      "train the model with <s> and </s>; `calque tokenizer train` does so");
    }
    encodes_words_apart_ = has_separate_words(bytes);
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    const auto status = processor_.Encode(text, &ids);
    if (!status.ok()) refuse(status);
    return ids;
  }

  std::vector<int32_t> encode_sampled(std::string_view text, double sampling, uint64_t seed) const override {
    sentencepiece::random::GetRandomGenerator()->seed(
        static_cast<std::mt19937::result_type>(mix(seed, 0x5A4D)));  // mutate: another random stream
    std::vector<int32_t> ids;
    const auto status = processor_.SampleEncode(text, -1, static_cast<float>(sampling), &ids);
    if (!status.ok())
      throw UserError(fmt::format("this tokenizer does not support sampling: {}", status.error_message()),
                      "set tokenizer.sampling=0");
    return ids;
  }

  bool encodes_words_apart() const override { return encodes_words_apart_; }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) refuse(status);
    return text;
  }

  int32_t size() const override { return processor_.GetPieceSize(); }
  const std::string& piece(int32_t id) const override { return processor_.IdToPiece(id); }

  std::optional<int32_t> find(std::string_view piece) const override {
    const int id = processor_.PieceToId(piece);
    return id == processor_.unk_id() && piece != processor_.IdToPiece(id) ? std::nullopt
                                                                          : std::optional<int32_t>(id);
  }

  bool is_byte(int32_t id) const override { return processor_.IsByte(id); }
  bool is_control(int32_t id) const override { return processor_.IsControl(id); }
  bool begins_word(int32_t id) const override { return std::string_view(piece(id)).starts_with(space_mark); }
  int32_t unknown_id() const override { return processor_.unk_id(); }
  int32_t begin_id() const override { return processor_.bos_id(); }
  int32_t end_id() const override { return processor_.eos_id(); }
  const char* file_name() const override { return "tokenizer.model"; }

  std::string pruned(std::span<const int32_t> kept) const override {
    const std::vector<SentencePiece> all = read_sentence_pieces(bytes_);
    std::vector<SentencePiece> pieces;
    const auto new_id = [&](int32_t id) {
      const auto found = std::find(kept.begin(), kept.end(), id);
      return found == kept.end() ? -1 : static_cast<int32_t>(found - kept.begin());
    };
    for (const int32_t id : kept) pieces.push_back(all.at(static_cast<size_t>(id)));
    return prune_sentence_piece(bytes_, pieces, new_id(unknown_id()), new_id(begin_id()), new_id(end_id()));
  }

  // BPE: of all adjacent pairs that form a piece together, the one with the highest score is merged first.
  std::vector<int32_t> parts_of(int32_t id) const override {
    std::vector<int32_t> visited = {id};
    if (is_control(id) || is_byte(id) || id == unknown_id()) return visited;
    std::vector<std::string> symbols;
    const std::string& text = piece(id);
    for (size_t at = 0; at < text.size();) {
      size_t end = at + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      symbols.push_back(text.substr(at, end - at));
      at = end;
    }
    for (const std::string& symbol : symbols) {
      if (const auto found = find(symbol)) visited.push_back(*found);
    }
    while (symbols.size() > 1) {
      size_t best = symbols.size();
      float best_score = -std::numeric_limits<float>::infinity();
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto joined = find(symbols[i] + symbols[i + 1]);
        if (joined && processor_.GetScore(*joined) > best_score) {
          best = i;
          best_score = processor_.GetScore(*joined);
        }
      }
      if (best == symbols.size()) break;
      symbols[best] += symbols[best + 1];
      symbols.erase(symbols.begin() + static_cast<int64_t>(best) + 1);
      visited.push_back(*find(symbols[best]));
    }
    return visited;
  }

 private:
  // Models that contradict themselves, such as one whose control piece is a letter, fail only in use.
  [[noreturn]] static void refuse(const sentencepiece::util::Status& status) {
    throw UserError(
        fmt::format("the tokenizer fails on a text: {}", shorten(std::string(status.error_message()), 200)),
        "the tokenizer's file is damaged, or a control piece of it occurs in texts");
  }

  std::string bytes_;
  bool encodes_words_apart_ = false;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::shared_ptr<const TokenizerModel> make_sentence_piece_model(const std::string& bytes,
                                                                const std::string& name) {
  return std::make_shared<SentencePieceModel>(bytes, name);
}

}  // namespace calque
