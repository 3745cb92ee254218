// Export to GGUF: a decoder's weights under llama.cpp's names and in its layouts, and the metadata that
// llama.cpp needs.
#include <map>

#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/weight_names.h"
#include "gguf_names.h"
#include "gguf_tokenizer.h"

namespace calque {

using nlohmann::json;

std::string with_replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

namespace {

// Gemma's pattern: every sixth layer uses full attention.
bool has_gemma_layer_pattern(const ModelConfig& c) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    if (c.slides(layer) != ((layer + 1) % gemma_layer_period != 0)) return false;
  }
  return true;
}

const GgufNames* names_of(const ModelConfig& config) {
  for (const GgufNames& names : gguf_architectures) {
    if (names.architecture == config.architecture) return &names;
  }
  return nullptr;
}

}  // namespace

bool has_gguf_form(const ModelConfig& c) {
  // GPT-2 can only be imported. llama.cpp supports Gemma 3 only with Gemma's own layer pattern and RoPE.
  return c.architecture != Architecture::gpt2 && names_of(c) != nullptr && !c.bias &&
         (c.architecture != Architecture::gemma3 ||
          (has_gemma_layer_pattern(c) && c.rope_local_theta == gemma_rope_local_theta));
}

NamedTensors gguf_tensors(const Decoder& decoder) {
  const ModelConfig& c = decoder.config();
  const GgufNames& names = *names_of(c);
  std::map<std::string, torch::Tensor> views;
  for (const auto& [name, view] : weight_views(decoder)) views[name] = view;
  NamedTensors tensors;
  const auto add = [&](const std::string& gguf_name, const std::string& hf_name, WeightTransform transform) {
    const auto found = views.find(hf_name);
    if (found == views.end()) return;
    torch::Tensor value = found->second;
    if (transform == WeightTransform::query || transform == WeightTransform::key)
      value =
          half_split_to_interleaved(value, transform == WeightTransform::query ? c.heads : c.kv_head_count());
    if (transform == WeightTransform::add_one) value = value + 1;
    tensors.emplace_back(gguf_name, value);
  };
  for (const GgufName& one : names.rest) add(one.gguf_name, one.hf_name, one.transform);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (const GgufName& one : names.block)
      add(fmt::format("blk.{}.{}", layer, one.gguf_name),
          fmt::format("{}{}.{}", names.layer_prefix, layer, one.hf_name), one.transform);
  }
  return tensors;
}

nlohmann::ordered_json gguf_metadata(const ModelConfig& c, const Tokenizer& tokenizer,
                                     const std::string& name) {
  const std::string architecture = names_of(c)->name, of = architecture + ".";
  nlohmann::ordered_json all = {{"general.architecture", architecture},
                                {"general.name", name},
                                {of + "block_count", c.layers},
                                {of + "context_length", c.context_length},
                                {of + "embedding_length", c.hidden_size},
                                {of + "feed_forward_length", c.mlp_size},
                                {of + "attention.head_count", c.heads},
                                {of + "attention.head_count_kv", c.kv_head_count()},
                                {of + "attention.key_length", c.head_size_or_default()},
                                {of + "attention.value_length", c.head_size_or_default()},
                                {of + "rope.dimension_count", c.head_size_or_default()},
                                {of + "attention.layer_norm_rms_epsilon", c.norm_epsilon},
                                {of + "rope.freq_base", c.rope_theta},
                                {of + "vocab_size", c.vocabulary}};
  if (c.sliding_window > 0) all[of + "attention.sliding_window"] = c.sliding_window;
  add_gguf_tokenizer(tokenizer, all);
  return all;
}

}  // namespace calque
