#include "calque/checkpoint/quantised.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "checkpoint/small_checkpoint.h"

namespace calque {

using nlohmann::json;

TEST(Quantised, EveryTypeMatchesTheGgufPackage) {
  const json golden = parse_file(golden_models / "blocks.json");
  EXPECT_EQ(golden.size(), 11U);
  for (const auto& [name, block] : golden.items()) {
    const BlockType* type = find_block_type(name);
    ASSERT_NE(type, nullptr) << name;
    const std::string digits = block["bytes"];
    std::string bytes;
    for (size_t i = 0; i < digits.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    std::vector<float> values(block["values"].size());
    dequantise(*type, bytes, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double expected = block["values"][i].get<double>();
      EXPECT_NEAR(values[i], expected, 1e-6 * (1 + std::abs(expected))) << name << " " << i;
    }
  }
}

TEST(Quantised, Q8RoundTripIsClose) {
  std::vector<float> values(96), back(96);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i) * 0.7F) * static_cast<float>(i % 5);
  const std::string bytes = quantise_q8_0(values);
  EXPECT_EQ(bytes.size(), 3U * 34);
  dequantise(*find_block_type("Q8_0"), bytes, back);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(back[i], values[i], 0.02);
}

TEST(Quantised, Q8RoundsToMultiplesOfTheLargestMagnitudeOverItsRange) {
  std::vector<float> values(64);
  for (size_t i = 0; i < 32; ++i) values[i] = static_cast<float>(i) - 16;
  values[31] = -127;  // the step is 1
  const std::string bytes = quantise_q8_0(values);
  ASSERT_EQ(bytes.size(), 68U);
  EXPECT_EQ(bytes.substr(0, 2), std::string("\x00\x3C", 2));  // 1 as a half
  for (size_t i = 0; i < 31; ++i) EXPECT_EQ(static_cast<int8_t>(bytes[2 + i]), static_cast<int>(i) - 16);
  EXPECT_EQ(static_cast<int8_t>(bytes[33]), -127);
  EXPECT_EQ(bytes.substr(34), std::string(34, '\0'));  // zeros stay zeros
}

TEST(Quantised, TypesAreFoundByNumberAndByName) {
  EXPECT_EQ(block_type_names(), "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16");
  for (const uint32_t number : {0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 30}) {
    const BlockType* type = find_block_type(number);
    ASSERT_NE(type, nullptr) << number;
    EXPECT_EQ(type->number, number);
    EXPECT_EQ(find_block_type(type->name), type);
  }
  EXPECT_EQ(find_block_type(4), nullptr);
  EXPECT_EQ(find_block_type("Q2_K"), nullptr);
}

}  // namespace calque
