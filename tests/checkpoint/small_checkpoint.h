// A small model with a tokenizer, as a checkpoint to import and to export; and what a call is refused with.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/data/sentence_piece_file.h"
#include "temporary_folder.h"
#include "tiny_model.h"

namespace calque {

inline const std::filesystem::path golden_models = source_folder() / "tests/golden/models";
inline const std::filesystem::path golden_tokenizer = source_folder() / "tests/golden/tokenizer/bpe.model";

inline nlohmann::json parse_file(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_file(path));
}

inline std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// The largest difference from golden logits.
inline double worst(const std::vector<std::vector<float>>& found, const nlohmann::json& expected) {
  if (found.size() != expected.size()) return 1e30;
  double difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].size() != expected[i].size()) return 1e30;
    for (size_t j = 0; j < found[i].size(); ++j)
      difference = std::max(difference, std::abs(found[i][j] - expected[i][j].get<double>()));
  }
  return difference;
}

// The decoder as folder/own, with this tokenizer.
inline std::filesystem::path write_own(const TemporaryFolder& folder, const Decoder& decoder,
                                       const std::string& tokenizer) {
  CheckpointContent content;
  for (const auto& [name, view] : weight_views(decoder))
    content.weights.emplace_back(name, view.contiguous());
  content.config = hf_config(decoder.config());
  content.tokenizer = tokenizer;
  if (tokenizer.starts_with('{')) content.tokenizer_file = "tokenizer.json";
  write_checkpoint(folder / "own", content);
  return folder / "own";
}

// A checkpoint of a small Llama with a real tokenizer.
inline std::filesystem::path own_checkpoint(const TemporaryFolder& folder,
                                            AttentionKind attention = AttentionKind::causal) {
  const std::string tokenizer = read_file(golden_tokenizer);
  ModelConfig config = tiny_config(Tokenizer::from_bytes(tokenizer, "t").size());
  config.attention = attention;
  return write_own(folder, *make_decoder(config), tokenizer);
}

// A SentencePiece model with 40 pieces, as many as the golden models have.
inline SentencePieceFile forty_pieces() {
  SentencePieceFile file;
  for (int i = 0; i < 40; ++i) {
    SentencePiece piece;
    piece.text = i == 0 ? "<unk>" : i == 1 ? "<s>" : i == 2 ? "</s>" : fmt::format("▁p{}", i);
    piece.kind = i == 0   ? SentencePiece::Kind::unknown
                 : i <= 2 ? SentencePiece::Kind::control
                          : SentencePiece::Kind::normal;
    if (i == 9) piece = {"▁▁", 0, SentencePiece::Kind::user_defined};
    if (i == 10) piece.text = "▁";
    file.pieces.push_back(piece);
  }
  file.unknown_id = 0;
  file.begin_id = 1;
  file.end_id = 2;
  return file;
}
inline std::string tokenizer_with_40_pieces() { return forty_pieces().serialize(); }

}  // namespace calque
