// llama.cpp's names for weights and the matching Hugging Face names, one table per architecture. Used to read
// and to write GGUF files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "calque/checkpoint/hf_config.h"

namespace calque {

// How a weight in llama.cpp's layout differs from Hugging Face's. query, key: RoPE is interleaved, not
// half-split; add_one: llama.cpp stores weight + 1.
enum class WeightTransform { none, query, key, transpose, add_one };

struct GgufName {
  const char* gguf_name;
  const char* hf_name;  // inside a block: without the prefix and the layer's number
  WeightTransform transform = WeightTransform::none;
};

inline constexpr GgufName llama_block[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", WeightTransform::query},
    {"attn_k.weight", "self_attn.k_proj.weight", WeightTransform::key},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
// Qwen's RoPE is half-split in GGUF too. Biases belong to Qwen 2, QK-norms to Qwen 3.
inline constexpr GgufName qwen_block[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
// llama.cpp stores Gemma's norm weights with 1 added.
inline constexpr GgufName gemma_block[] = {
    {"attn_norm.weight", "input_layernorm.weight", WeightTransform::add_one},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", WeightTransform::add_one},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", WeightTransform::add_one},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", WeightTransform::add_one},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", WeightTransform::add_one},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", WeightTransform::add_one},
};
inline constexpr GgufName gpt2_block[] = {
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", WeightTransform::transpose},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", WeightTransform::transpose},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", WeightTransform::transpose},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", WeightTransform::transpose},
    {"ffn_down.bias", "mlp.c_proj.bias"},
};
inline constexpr GgufName llama_rest[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                          {"output_norm.weight", "model.norm.weight"},
                                          {"output.weight", "lm_head.weight"}};
inline constexpr GgufName gemma_rest[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", WeightTransform::add_one}};
inline constexpr GgufName gpt2_rest[] = {{"token_embd.weight", "transformer.wte.weight"},
                                         {"position_embd.weight", "transformer.wpe.weight"},
                                         {"output_norm.weight", "transformer.ln_f.weight"},
                                         {"output_norm.bias", "transformer.ln_f.bias"}};

// The names of one architecture's weights.
struct GgufNames {
  Architecture architecture;
  const char* name;                       // llama.cpp's name of the architecture
  const char* layer_prefix;               // of Hugging Face's names, before the layer's number
  std::span<const GgufName> block, rest;  // weights of each block; all others
};
inline constexpr GgufNames gguf_architectures[] = {
    {Architecture::llama, "llama", "model.layers.", llama_block, llama_rest},
    {Architecture::qwen2, "qwen2", "model.layers.", qwen_block, llama_rest},
    {Architecture::qwen3, "qwen3", "model.layers.", qwen_block, llama_rest},
    {Architecture::gemma3, "gemma3", "model.layers.", gemma_block, gemma_rest},
    {Architecture::gpt2, "gpt2", "transformer.h.", gpt2_block, gpt2_rest}};

// llama.cpp hard-codes these values of Gemma 3; GGUF files do not contain them.
inline constexpr int64_t gemma_layer_period = 6;
inline constexpr double gemma_rope_local_theta = 10000;

// SentencePiece writes spaces as this mark in all pieces; llama.cpp writes user-defined pieces with spaces.
inline constexpr std::string_view space_mark = "\xE2\x96\x81";  // "▁"
std::string with_replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace calque
