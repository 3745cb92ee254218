#include "calque/checkpoint/quantised.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace calque {
namespace {

using Byte = unsigned char;

float read_half(const Byte* from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return static_cast<float>(c10::Half(bits, c10::Half::from_bits()));
}

void expand_f32(const Byte* block, float* out) { std::memcpy(out, block, sizeof *out); }
void expand_f16(const Byte* block, float* out) { *out = read_half(block); }
void expand_bf16(const Byte* block, float* out) {
  uint16_t bits;
  std::memcpy(&bits, block, sizeof bits);
  *out = static_cast<float>(c10::BFloat16(bits, c10::BFloat16::from_bits()));
}

void expand_q4_0(const Byte* block, float* out) {
  const float d = read_half(block);
  for (int i = 0; i < 16; ++i) {
    const Byte two = block[2 + i];
    out[i] = static_cast<float>((two & 0x0F) - 8) * d;
    out[i + 16] = static_cast<float>((two >> 4) - 8) * d;
  }
}

void expand_q4_1(const Byte* block, float* out) {
  const float d = read_half(block), m = read_half(block + 2);
  for (int i = 0; i < 16; ++i) {
    const Byte two = block[4 + i];
    out[i] = static_cast<float>(two & 0x0F) * d + m;
    out[i + 16] = static_cast<float>(two >> 4) * d + m;
  }
}

// Q5_0 and Q5_1: the fifth bit of value i is bit i of a separate 32-bit word.
void expand_q5(const Byte* high, const Byte* low, float d, float m, int zero, float* out) {
  uint32_t fifth;
  std::memcpy(&fifth, high, sizeof fifth);
  for (int i = 0; i < 16; ++i) {
    const int first = static_cast<int>((low[i] & 0x0F) | (((fifth >> i) & 1) << 4));
    const int second = static_cast<int>((low[i] >> 4) | (((fifth >> (i + 16)) & 1) << 4));
    out[i] = static_cast<float>(first - zero) * d + m;
    out[i + 16] = static_cast<float>(second - zero) * d + m;
  }
}
void expand_q5_0(const Byte* block, float* out) {
  expand_q5(block + 2, block + 6, read_half(block), 0, 16, out);
}
void expand_q5_1(const Byte* block, float* out) {
  expand_q5(block + 4, block + 8, read_half(block), read_half(block + 2), 0, out);
}

void expand_q8_0(const Byte* block, float* out) {
  const float d = read_half(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

// Scales and minimums of eight sub-blocks, six bits each, packed into twelve bytes.
std::pair<float, float> scale_and_minimum(const Byte* packed, int i) {
  const int scale = i < 4 ? packed[i] & 63 : (packed[i + 4] & 0x0F) | ((packed[i - 4] >> 6) << 4);
  const int minimum = i < 4 ? packed[i + 4] & 63 : (packed[i + 4] >> 4) | ((packed[i] >> 6) << 4);
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

// Q4_K and Q5_K: four bits per value, for Q5_K a fifth from `fifths`. Two sub-blocks of 32 share 32 bytes.
void expand_k(const Byte* packed, const Byte* fifths, const Byte* low, float d, float m, float* out) {
  for (int pair = 0; pair < 4; ++pair, low += 32, out += 64) {
    const auto [scale_1, minimum_1] = scale_and_minimum(packed, 2 * pair);
    const auto [scale_2, minimum_2] = scale_and_minimum(packed, 2 * pair + 1);
    for (int i = 0; i < 32; ++i) {
      const int more_1 = fifths != nullptr && (fifths[i] >> (2 * pair) & 1) != 0 ? 16 : 0;
      const int more_2 = fifths != nullptr && (fifths[i] >> (2 * pair + 1) & 1) != 0 ? 16 : 0;
      out[i] = d * scale_1 * static_cast<float>((low[i] & 0x0F) + more_1) - m * minimum_1;
      out[i + 32] = d * scale_2 * static_cast<float>((low[i] >> 4) + more_2) - m * minimum_2;
    }
  }
}
void expand_q4_k(const Byte* block, float* out) {
  expand_k(block + 4, nullptr, block + 16, read_half(block), read_half(block + 2), out);
}
void expand_q5_k(const Byte* block, float* out) {
  expand_k(block + 4, block + 16, block + 48, read_half(block), read_half(block + 2), out);
}

void expand_q6_k(const Byte* block, float* out) {
  const Byte *low = block, *high = block + 128;
  const Byte* scales = block + 192;  // sixteen signed bytes
  const float d = read_half(block + 208);
  const auto scale = [&](int i) { return d * static_cast<float>(static_cast<int8_t>(scales[i])); };
  for (int part = 0; part < 2; ++part, low += 64, high += 32, scales += 8, out += 128) {
    for (int i = 0; i < 32; ++i) {
      const int at = i / 16;
      const auto value = [&](int low_bits, int shift) {
        return static_cast<float>((low_bits | (((high[i] >> shift) & 3) << 4)) - 32);
      };
      out[i] = scale(at) * value(low[i] & 0x0F, 0);
      out[i + 32] = scale(at + 2) * value(low[i + 32] & 0x0F, 2);
      out[i + 64] = scale(at + 4) * value(low[i] >> 4, 4);
      out[i + 96] = scale(at + 6) * value(low[i + 32] >> 4, 6);
    }
  }
}

constexpr BlockType block_types[] = {
    {0, "F32", 1, 4, expand_f32},        {1, "F16", 1, 2, expand_f16},
    {2, "Q4_0", 32, 18, expand_q4_0},    {3, "Q4_1", 32, 20, expand_q4_1},
    {6, "Q5_0", 32, 22, expand_q5_0},    {7, "Q5_1", 32, 24, expand_q5_1},
    {8, "Q8_0", 32, 34, expand_q8_0},    {12, "Q4_K", 256, 144, expand_q4_k},
    {13, "Q5_K", 256, 176, expand_q5_k}, {14, "Q6_K", 256, 210, expand_q6_k},
    {30, "BF16", 1, 2, expand_bf16},
};

}  // namespace

const BlockType* find_block_type(uint32_t number) {
  const auto* found = std::find_if(std::begin(block_types), std::end(block_types),
                                   [&](const BlockType& type) { return type.number == number; });
  return found == std::end(block_types) ? nullptr : found;
}

const BlockType* find_block_type(std::string_view name) {
  const auto* found = std::find_if(std::begin(block_types), std::end(block_types),
                                   [&](const BlockType& type) { return type.name == name; });
  return found == std::end(block_types) ? nullptr : found;
}

std::string block_type_names() {
  std::string names;
  for (const BlockType& type : block_types) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

void dequantise(const BlockType& type, std::string_view bytes, std::span<float> values) {
  const auto* block = reinterpret_cast<const Byte*>(bytes.data());
  const auto count = static_cast<int64_t>(values.size()) / type.values;
  for (int64_t i = 0; i < count; ++i) type.expand(block + i * type.bytes, values.data() + i * type.values);
}

std::string quantise_q8_0(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() / 32 * 34);
  for (size_t begin = 0; begin + 32 <= values.size(); begin += 32) {
    float largest = 0;
    for (size_t i = begin; i < begin + 32; ++i) largest = std::max(largest, std::abs(values[i]));
    const float step = largest / 127, inverse = step > 0 ? 1 / step : 0;
    const c10::Half stored(step);
    bytes.append(reinterpret_cast<const char*>(&stored.x), sizeof stored.x);
    for (size_t i = begin; i < begin + 32; ++i)
      bytes.push_back(static_cast<char>(static_cast<int8_t>(std::round(values[i] * inverse))));
  }
  return bytes;
}

}  // namespace calque
