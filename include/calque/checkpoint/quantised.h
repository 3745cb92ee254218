// Quantised: GGUF's block formats (small integers with a scale per block), converted from and to floats.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace calque {

// A ggml tensor type that can be read.
struct BlockType {
  uint32_t number;
  const char* name;
  int64_t values;  // per block
  int64_t bytes;   // per block
  void (*expand)(const unsigned char* block, float* values);
};

const BlockType* find_block_type(uint32_t number);  // null if unknown
const BlockType* find_block_type(std::string_view name);
std::string block_type_names();  // "F32, F16, …"

// bytes: whole blocks; values: as many as these blocks hold.
void dequantise(const BlockType& type, std::string_view bytes, std::span<float> values);

// Blocks of 32 values. Each value is an integer in -127 … 127 times the block's largest magnitude / 127.
std::string quantise_q8_0(std::span<const float> values);

}  // namespace calque
