// GGUF files written: a decoder's weights under llama.cpp's names and in its layouts, and the metadata that
// it wants.
#include <map>

#include "calque/convert/formats.h"
#include "calque/data/sentence_piece_file.h"
#include "gguf_names.h"

namespace calque {

using nlohmann::json;

std::string with_replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

namespace {

const GgufNames* names_of(const ModelConfig& config) {
  for (const GgufNames& names : gguf_architectures) {
    if (names.architecture == architecture_of(config)) return &names;
  }
  return nullptr;
}

}  // namespace

bool has_gguf_form(const ModelConfig& c) {
  const Architecture architecture = architecture_of(c);
  // GPT-2 is only read. Of Gemma llama.cpp knows what its makers chose.
  return architecture != Architecture::gpt2 && names_of(c) != nullptr && !c.bias &&
         (architecture != Architecture::gemma3 ||
          (c.window_period == gemma_window_period && c.window_rotary_base == gemma_window_rotary_base));
}

// The other way: a decoder's weights under llama.cpp's names and in its layouts.
NamedTensors gguf_tensors(const Decoder& decoder) {
  const ModelConfig& c = decoder.config();
  const GgufNames& names = *names_of(c);
  std::map<std::string, torch::Tensor> views;
  for (const auto& [name, view] : hf_views(decoder)) views[name] = view;
  NamedTensors tensors;
  const auto add = [&](const std::string& stored, const std::string& outside, Turn turn) {
    const auto found = views.find(outside);
    if (found == views.end()) return;
    torch::Tensor value = found->second;
    if (turn == Turn::query || turn == Turn::key)
      value = neighbours_together(value, turn == Turn::query ? c.heads : c.key_value_head_count());
    if (turn == Turn::one_more) value = value + 1;
    tensors.emplace_back(stored, value);
  };
  for (const GgufName& one : names.rest) add(one.stored, one.outside, one.turn);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (const GgufName& one : names.block)
      add(fmt::format("blk.{}.{}", layer, one.stored),
          fmt::format("{}{}.{}", names.layers, layer, one.outside), one.turn);
  }
  return tensors;
}

nlohmann::ordered_json gguf_metadata(const ModelConfig& c, const Tokenizer& tokenizer,
                                     const std::string& name) {
  const std::string architecture = names_of(c)->name, of = architecture + ".";
  nlohmann::ordered_json all = {{"general.architecture", architecture},
                                {"general.name", name},
                                {of + "block_count", c.layers},
                                {of + "context_length", c.max_positions},
                                {of + "embedding_length", c.width},
                                {of + "feed_forward_length", c.feed_forward_width},
                                {of + "attention.head_count", c.heads},
                                {of + "attention.head_count_kv", c.key_value_head_count()},
                                {of + "attention.key_length", c.width_of_head()},
                                {of + "attention.value_length", c.width_of_head()},
                                {of + "rope.dimension_count", c.width_of_head()},
                                {of + "attention.layer_norm_rms_epsilon", c.norm_epsilon},
                                {of + "rope.freq_base", c.rotary_base},
                                {of + "vocab_size", c.vocabulary}};
  if (c.window > 0) all[of + "attention.sliding_window"] = c.window;
  nlohmann::ordered_json tokens = json::array(), scores = json::array(), types = json::array(), merges;
  if (std::string(tokenizer.file_name()) == "tokenizer.json") {
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      tokens.push_back(tokenizer.piece(id));
      types.push_back(id == tokenizer.unknown_id() ? 2 : tokenizer.is_control(id) ? 3 : 1);
    }
    const json file = json::parse(tokenizer.serialized());
    merges = json::array();
    for (const json& merge : file["model"]["merges"])
      merges.push_back(merge.is_array() ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                                        : merge.get<std::string>());
    all["tokenizer.ggml.model"] = "gpt2";
    all["tokenizer.ggml.merges"] = merges;
    all["tokenizer.ggml.pre"] = file["pre_tokenizer"].value("type", "") == "Sequence" ? "smollm" : "gpt-2";
  } else {
    for (const SentencePiece& piece : read_sentence_pieces(tokenizer.serialized())) {
      tokens.push_back(piece.kind == SentencePiece::Kind::user_defined
                           ? with_replaced(piece.text, blank_mark, " ")
                           : piece.text);
      scores.push_back(piece.score);
      types.push_back(static_cast<int>(piece.kind));
    }
    all["tokenizer.ggml.model"] = "llama";
    all["tokenizer.ggml.scores"] = scores;
    all["tokenizer.ggml.unknown_token_id"] = tokenizer.unknown_id();
    const auto ids = tokenizer.encode("a");
    all["tokenizer.ggml.add_space_prefix"] = !ids.empty() && tokenizer.begins_word(ids.front());
    all["tokenizer.ggml.remove_extra_whitespaces"] = tokenizer.encode("a  b") == tokenizer.encode("a b");
  }
  all["tokenizer.ggml.tokens"] = tokens;
  all["tokenizer.ggml.token_type"] = types;
  all["tokenizer.ggml.bos_token_id"] = tokenizer.begin_id();
  all["tokenizer.ggml.eos_token_id"] = tokenizer.end_id();
  return all;
}

}  // namespace calque
