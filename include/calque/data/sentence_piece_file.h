// SentencePieceFile: a SentencePiece model as its pieces, to build one from another program's vocabulary, or
// to take pieces out of one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace calque {

struct SentencePiece {
  enum class Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string text;  // «▁» for blanks
  float score = 0;
  Kind kind = Kind::normal;
};

struct SentencePieceFile {
  std::vector<SentencePiece> pieces;
  int32_t unknown_id = 0, begin_id = 1, end_id = 2;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = false;

  // A BPE model with byte fallback that changes nothing in the text but its blanks.
  std::string serialize() const;
};

// The pieces of a model's file, in order.
std::vector<SentencePiece> read_sentence_pieces(const std::string& model);

// The same model with only `kept` of its pieces; how it was trained and how it normalises stay.
std::string prune_sentence_piece(const std::string& model, const std::vector<SentencePiece>& kept,
                                 int32_t unknown_id, int32_t begin_id, int32_t end_id);

}  // namespace calque
