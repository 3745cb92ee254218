// llama.cpp's names for weights beside Hugging Face's, one table an architecture; shared by reading and
// writing GGUF files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "calque/convert/hf_names.h"

namespace calque {

// One name inside a block: llama.cpp's, Hugging Face's, and what has to be done to its rows.
struct GgufName {
  const char* stored;
  const char* outside;
  enum class Turn { none, query, key, transpose, one_more } turn = Turn::none;
};
using Turn = GgufName::Turn;

inline constexpr GgufName llama_block[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Turn::query},
    {"attn_k.weight", "self_attn.k_proj.weight", Turn::key},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
// Qwen's heads turn halves, as ours do. Biases are Qwen 2's, head norms Qwen 3's.
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
// llama.cpp keeps Gemma's norm weights with the one added.
inline constexpr GgufName gemma_block[] = {
    {"attn_norm.weight", "input_layernorm.weight", Turn::one_more},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", Turn::one_more},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", Turn::one_more},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", Turn::one_more},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", Turn::one_more},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", Turn::one_more},
};
inline constexpr GgufName gpt2_block[] = {
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", Turn::transpose},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", Turn::transpose},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", Turn::transpose},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", Turn::transpose},
    {"ffn_down.bias", "mlp.c_proj.bias"},
};
inline constexpr GgufName llama_rest[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                          {"output_norm.weight", "model.norm.weight"},
                                          {"output.weight", "lm_head.weight"}};
inline constexpr GgufName gemma_rest[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                          {"output_norm.weight", "model.norm.weight", Turn::one_more}};
inline constexpr GgufName gpt2_rest[] = {{"token_embd.weight", "transformer.wte.weight"},
                                         {"position_embd.weight", "transformer.wpe.weight"},
                                         {"output_norm.weight", "transformer.ln_f.weight"},
                                         {"output_norm.bias", "transformer.ln_f.bias"}};

// llama.cpp's names for one architecture.
struct GgufNames {
  Architecture architecture;
  const char* name;
  const char* layers;  // what stands before a layer's number in Hugging Face's names
  std::span<const GgufName> block, rest;
};
inline constexpr GgufNames gguf_architectures[] = {
    {Architecture::llama, "llama", "model.layers.", llama_block, llama_rest},
    {Architecture::qwen2, "qwen2", "model.layers.", qwen_block, llama_rest},
    {Architecture::qwen3, "qwen3", "model.layers.", qwen_block, llama_rest},
    {Architecture::gemma3, "gemma3", "model.layers.", gemma_block, gemma_rest},
    {Architecture::gpt2, "gpt2", "transformer.h.", gpt2_block, gpt2_rest}};

// llama.cpp knows these of Gemma 3 by heart; no file says them.
inline constexpr int64_t gemma_window_period = 6;
inline constexpr double gemma_window_rotary_base = 10000;

// llama.cpp writes pieces that users defined with blanks, SentencePiece all of them with this.
inline constexpr std::string_view blank_mark = "\xE2\x96\x81";  // «▁»
std::string with_replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace calque
