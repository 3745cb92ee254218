// A SentencePiece model of a few letters, for tests that know every piece of it.
#pragma once

#include "calque/data/sentence_piece_file.h"

namespace calque {

// <unk> 0, <s> 1, </s> 2, then ▁ a b c, and what BPE merges them to. The higher score is merged first.
inline SentencePieceFile letters_file(float score_of_ab = -1, float score_of_bc = -2) {
  using Kind = SentencePiece::Kind;
  SentencePieceFile file;
  file.pieces = {
      {"<unk>", 0, Kind::unknown}, {"<s>", 0, Kind::control},         {"</s>", 0, Kind::control},
      {"▁", -10, Kind::normal},    {"a", -11, Kind::normal},          {"b", -12, Kind::normal},
      {"c", -13, Kind::normal},    {"ab", score_of_ab, Kind::normal}, {"bc", score_of_bc, Kind::normal},
      {"abc", -3, Kind::normal},   {"▁abc", -4, Kind::normal}};
  return file;
}

}  // namespace calque
