// Quantised: blocks of small whole numbers with their scales, as GGUF files hold weights, and back to floats.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace calque {

// The types of ggml's list that are read here.
struct BlockType {
  uint32_t number;
  const char* name;
  int64_t values;  // in a block
  int64_t bytes;   // of a block
  void (*expand)(const unsigned char* block, float* values);
};

const BlockType* find_block_type(uint32_t number);  // null if unknown
const BlockType* find_block_type(std::string_view name);
std::string block_type_names();  // «F32, F16, …»

// bytes holds whole blocks; values as many as they stand for.
void dequantise(const BlockType& type, std::string_view bytes, std::span<float> values);

// For writing: 32 values a block, each a whole number of -127 … 127 times the block's largest / 127.
std::string quantise_q8_0(std::span<const float> values);

}  // namespace calque
