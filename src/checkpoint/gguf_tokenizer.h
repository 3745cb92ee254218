// GGUF tokenizers: the metadata with which llama.cpp gives a text the same ids as calque.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "calque/data/tokenizer.h"

namespace calque {

// The pre-tokenizer that tokenizer.ggml.pre names, as in a tokenizer.json; null if the name is unknown.
nlohmann::json pre_tokenizer_by_name(const std::string& name);
std::string known_pre_tokenizers();  // for messages: "gpt-2, smollm, …"

// Throws a UserError that says why, if llama.cpp cannot give the same ids. skip_normalization: accept a
// tokenizer that normalises text (NFC, NFKC), which llama.cpp does not do.
void check_gguf_tokenizer(const Tokenizer& tokenizer, bool skip_normalization);

// Adds the keys tokenizer.ggml.*.
void add_gguf_tokenizer(const Tokenizer& tokenizer, nlohmann::ordered_json& metadata);

}  // namespace calque
