// A SentencePiece model as a tokenizer.json, so that AutoTokenizer gives the same ids without the
// SentencePiece and protobuf packages.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "calque/data/sequence.h"
#include "calque/data/tokenizer.h"

namespace calque {

// nullopt if tokenizer.json cannot express the model. The post-processor builds the prompt from one text
// (source), and the full training sequence from a text pair (source, target).
std::optional<nlohmann::json> sentence_piece_json(const Tokenizer& tokenizer, const SequenceFormat& format);

}  // namespace calque
