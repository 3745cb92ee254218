// A SentencePiece model as a tokenizer.json, so that AutoTokenizer gives the same ids without the
// SentencePiece and protobuf packages.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "calque/data/sequence.h"
#include "calque/data/tokenizer.h"

namespace calque {

// Nothing if the format cannot express the model. Its template makes a model's prompt of a source, and a
// whole sequence of a source and a target.
std::optional<nlohmann::json> sentence_piece_json(const Tokenizer& tokenizer, const SequenceFormat& format);

}  // namespace calque
