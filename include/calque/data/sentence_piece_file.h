// SentencePieceFile: reads and writes SentencePiece model files, to build a model from another program's
// vocabulary or to remove pieces from a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace calque {

struct SentencePiece {
  enum class Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string text;  // "▁" for spaces
  float score = 0;
  Kind kind = Kind::normal;
};

struct SentencePieceFile {
  std::vector<SentencePiece> pieces;
  int32_t unknown_id = 0, begin_id = 1, end_id = 2;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = false;

  // The bytes of a BPE model that normalises only spaces. With 256 byte pieces it has byte fallback.
  std::string serialize() const;
};

// The pieces in the bytes of a model file, in order.
std::vector<SentencePiece> read_sentence_pieces(const std::string& model);

// How a model file turns text into pieces.
struct SentencePieceSettings {
  bool is_unigram = true;      // the format's default
  bool byte_fallback = false;  // unknown characters become byte pieces
  std::string normalizer;      // name of the rule, such as nfkc
  std::string charsmap;        // the rule as a table; empty: no normalisation
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;     // spaces become "▁"
  bool whitespace_as_suffix = false;  // "▁" ends a word instead of beginning it
};
SentencePieceSettings read_sentence_piece_settings(const std::string& model);

// The same model with only the pieces `kept`. Its training and normalisation settings do not change.
std::string prune_sentence_piece(const std::string& model, const std::vector<SentencePiece>& kept,
                                 int32_t unknown_id, int32_t begin_id, int32_t end_id);

}  // namespace calque
