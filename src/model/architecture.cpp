#include "calque/model/architecture.h"

namespace calque {
namespace {

constexpr Fixed yes = Fixed::yes, no = Fixed::no, free_choice = Fixed::free;

// clang-format off
constexpr ArchitectureTraits table[] = {
    //                      model_type     class_name          names               norm                    positions              activation         bias         qkv  qk   post scale tied         window default head
    {Architecture::llama,  "llama",       "LlamaForCausalLM",  WeightNames::llama, NormKind::rms,          PositionKind::rope,    Activation::swiglu, free_choice, no,  no,  no,  no,   free_choice, no,    0},
    {Architecture::gpt2,   "gpt2",        "GPT2LMHeadModel",   WeightNames::gpt2,  NormKind::layer,        PositionKind::learned, Activation::gelu,   yes,         no,  no,  no,  no,   yes,         no,    0},
    {Architecture::qwen2,  "qwen2",       "Qwen2ForCausalLM",  WeightNames::llama, NormKind::rms,          PositionKind::rope,    Activation::swiglu, no,          yes, no,  no,  no,   free_choice, no,    0},
    {Architecture::qwen3,  "qwen3",       "Qwen3ForCausalLM",  WeightNames::llama, NormKind::rms,          PositionKind::rope,    Activation::swiglu, no,          no,  yes, no,  no,   free_choice, no,    128},
    {Architecture::gemma3, "gemma3_text", "Gemma3ForCausalLM", WeightNames::llama, NormKind::rms_plus_one, PositionKind::rope,    Activation::geglu,  no,          no,  yes, yes, yes,  yes,         yes,   256},
};
// clang-format on

}  // namespace

std::span<const ArchitectureTraits> architectures() { return table; }

const ArchitectureTraits* find_architecture(Architecture architecture) {
  for (const ArchitectureTraits& traits : table) {
    if (traits.architecture == architecture) return &traits;
  }
  return nullptr;
}

}  // namespace calque
