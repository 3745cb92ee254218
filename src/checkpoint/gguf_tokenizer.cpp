#include "gguf_tokenizer.h"

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/checkpoint/formats.h"
#include "calque/data/sentence_piece_file.h"
#include "gguf_names.h"

namespace calque {
namespace {

using nlohmann::json;

// Splits of a pre-tokenizer in tokenizer.json's terms. llama.cpp names such combinations by the model that
// had them first (llama-vocab.cpp).
struct PreTokenizer {
  const char* name;   // tokenizer.ggml.pre
  bool digits;        // every digit is a token of its own
  const char* regex;  // of a Split; empty: GPT-2's, which is a part of ByteLevel
};
constexpr const char* words_and_punctuation = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* contractions_and_letters = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
const std::string llama3_regex =
    std::string(contractions_and_letters) + R"(\p{N}{1,3})" + words_and_punctuation;
const std::string qwen2_regex = std::string(contractions_and_letters) + R"(\p{N})" + words_and_punctuation;

const std::vector<PreTokenizer>& pre_tokenizers() {
  static const std::vector<PreTokenizer> all = {{"gpt-2", false, ""},
                                                {"smollm", true, ""},
                                                {"llama-bpe", false, llama3_regex.c_str()},
                                                {"qwen2", false, qwen2_regex.c_str()}};
  return all;
}

json as_json(const PreTokenizer& one) {
  const std::string regex = one.regex;
  const json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", regex.empty()}};
  json steps = json::array();
  if (one.digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!regex.empty())
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}});
  if (steps.empty()) return bytes;
  steps.push_back(bytes);
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

// What a pre-tokenizer does, in a form that can be compared: nested sequences are flattened, and settings
// that do not change the ids are left out.
void add_steps(const json& step, json& steps) {
  const std::string type = step.value("type", "");
  if (type == "Sequence") {
    for (const json& one : step.at("pretokenizers")) add_steps(one, steps);
  } else if (type == "ByteLevel") {
    steps.push_back({type, step.value("add_prefix_space", false), step.value("use_regex", true)});
  } else if (type == "Digits") {
    steps.push_back({type, step.value("individual_digits", false)});
  } else {
    steps.push_back({type, step.value("pattern", json())});
  }
}

std::optional<std::string> name_of_pre_tokenizer(const json& pre_tokenizer) {
  json wanted = json::array();
  add_steps(pre_tokenizer, wanted);
  for (const PreTokenizer& one : pre_tokenizers()) {
    json steps = json::array();
    add_steps(as_json(one), steps);
    if (steps == wanted) return one.name;
  }
  return std::nullopt;
}

bool is_byte_level(const Tokenizer& tokenizer) {
  return std::string(tokenizer.file_name()) == "tokenizer.json";
}

void add_byte_level(const Tokenizer& tokenizer, nlohmann::ordered_json& all) {
  nlohmann::ordered_json tokens = json::array(), types = json::array(), merges = json::array();
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    tokens.push_back(tokenizer.piece(id));
    types.push_back(id == tokenizer.unknown_id() ? 2 : tokenizer.is_control(id) ? 3 : 1);
  }
  const json file = json::parse(tokenizer.serialized());
  for (const json& merge : file["model"]["merges"])
    merges.push_back(merge.is_array() ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                                      : merge.get<std::string>());
  all["tokenizer.ggml.model"] = "gpt2";
  all["tokenizer.ggml.pre"] = name_of_pre_tokenizer(file["pre_tokenizer"]).value();
  all["tokenizer.ggml.tokens"] = tokens;
  all["tokenizer.ggml.token_type"] = types;
  all["tokenizer.ggml.merges"] = merges;
}

void add_sentence_piece(const Tokenizer& tokenizer, nlohmann::ordered_json& all) {
  nlohmann::ordered_json tokens = json::array(), scores = json::array(), types = json::array();
  for (const SentencePiece& piece : read_sentence_pieces(tokenizer.serialized())) {
    tokens.push_back(piece.kind == SentencePiece::Kind::user_defined
                         ? with_replaced(piece.text, space_mark, " ")
                         : piece.text);
    scores.push_back(piece.score);
    types.push_back(static_cast<int>(piece.kind));
  }
  const SentencePieceSettings settings = read_sentence_piece_settings(tokenizer.serialized());
  all["tokenizer.ggml.model"] = "llama";
  all["tokenizer.ggml.tokens"] = tokens;
  all["tokenizer.ggml.token_type"] = types;
  all["tokenizer.ggml.scores"] = scores;
  all["tokenizer.ggml.unknown_token_id"] = tokenizer.unknown_id();
  all["tokenizer.ggml.add_space_prefix"] = settings.add_dummy_prefix;
  all["tokenizer.ggml.remove_extra_whitespaces"] = settings.remove_extra_whitespaces;
}

}  // namespace

json pre_tokenizer_by_name(const std::string& name) {
  const std::string known = name == "default" || name == "gpt2" ? "gpt-2" : name;
  for (const PreTokenizer& one : pre_tokenizers()) {
    if (one.name == known) return as_json(one);
  }
  return nullptr;
}

std::string known_pre_tokenizers() {
  std::vector<std::string> names;
  for (const PreTokenizer& one : pre_tokenizers()) names.emplace_back(one.name);
  return join(names, ", ");
}

void check_gguf_tokenizer(const Tokenizer& tokenizer, bool skip_normalization) {
  std::string normalizer;
  if (is_byte_level(tokenizer)) {
    const json file = json::parse(tokenizer.serialized());
    if (!name_of_pre_tokenizer(file["pre_tokenizer"]))
      throw UserError("calque cannot tell which pre-tokenizer of llama.cpp matches this tokenizer's",
                      "export with --format hf; supported for GGUF: " + known_pre_tokenizers());
    if (!file.value("normalizer", json()).is_null()) normalizer = "NFC";
  } else {
    const SentencePieceSettings settings = read_sentence_piece_settings(tokenizer.serialized());
    if (settings.is_unigram)
      throw UserError(
          "llama.cpp cannot run a unigram tokenizer with byte fallback: its token ids would differ",
          "export with --format hf, or train with tokenizer.kind=bpe");
    if (!settings.charsmap.empty()) normalizer = "NFKC";
  }
  if (!normalizer.empty() && !skip_normalization)
    throw UserError(
        fmt::format("the tokenizer normalises text to {0}, which llama.cpp does not do: token ids "
                    "would differ for text that is not in {0}",
                    normalizer),
        fmt::format("normalise the input of llama.cpp to {} yourself and pass --skip-normalization{}",
                    normalizer, is_byte_level(tokenizer) ? "" : ", or train with tokenizer.nfkc=false"));
}

void add_gguf_tokenizer(const Tokenizer& tokenizer, nlohmann::ordered_json& metadata) {
  is_byte_level(tokenizer) ? add_byte_level(tokenizer, metadata) : add_sentence_piece(tokenizer, metadata);
  metadata["tokenizer.ggml.bos_token_id"] = tokenizer.begin_id();
  metadata["tokenizer.ggml.eos_token_id"] = tokenizer.end_id();
  // Every sequence that calque trains on begins with BOS; EOS is appended only in training.
  metadata["tokenizer.ggml.add_bos_token"] = true;
  metadata["tokenizer.ggml.add_eos_token"] = false;
}

}  // namespace calque
