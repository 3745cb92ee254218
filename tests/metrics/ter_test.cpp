#include "calque/metrics/ter.h"

#include <gtest/gtest.h>

namespace calque {
namespace {

// prefix0 prefix1 … , a space after each.
std::string numbered_words(const std::string& prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += prefix + std::to_string(i) + " ";
  return text;
}

double ter(const std::string& hypothesis, const std::string& reference) {
  const auto metric = make_ter({});
  return metric->score(metric->count(hypothesis, std::vector<std::string>{reference}));
}

}  // namespace

// The expected scores are those of sacrebleu 2.6.0, TER().sentence_score.
TEST(Ter, BlocksOfUpToTenWordsAreShifted) {
  for (const auto& [length, expected] :
       std::vector<std::pair<int, double>>{{9, 3.448276}, {10, 3.333333}, {11, 6.451613}, {12, 6.25}}) {
    const std::string a = numbered_words("a", length), b = numbered_words("b", 20);
    EXPECT_NEAR(ter(b + a, a + b), expected, 1e-6) << length;
  }
}

TEST(Ter, BlocksAreShiftedByUpToFiftyWords) {
  for (const auto& [distance, expected] :
       std::vector<std::pair<int, double>>{{49, 2.0}, {50, 1.960784}, {51, 3.846154}, {52, 3.773585}}) {
    const std::string b = numbered_words("b", distance);
    EXPECT_NEAR(ter(b + "x", "x " + b), expected, 1e-6) << distance;
  }
}

TEST(Ter, TheEditDistanceLooks25WordsToEitherSide) {
  const std::string b = numbered_words("b", 60);
  for (const auto& [extra, expected] : std::vector<std::pair<int, double>>{
           {23, 38.333333}, {24, 40.0}, {25, 41.666667}, {26, 43.333333}, {27, 45.0}})
    EXPECT_NEAR(ter(numbered_words("z", extra) + b, b), expected, 1e-6) << extra;
  for (const auto& [missing, expected] : std::vector<std::pair<int, double>>{
           {23, 27.710843}, {24, 28.571429}, {25, 32.941176}, {26, 34.883721}, {27, 37.931034}})
    EXPECT_NEAR(ter(b, numbered_words("z", missing) + b), expected, 1e-6) << missing;
  // Of a much longer reference it looks at more.
  for (const auto& [length, expected] : std::vector<std::pair<int, double>>{
           {99, 100.0}, {100, 100.0}, {101, 99.009901}, {102, 99.019608}, {120, 100.0}})
    EXPECT_NEAR(ter("b0 z", numbered_words("b", length)), expected, 1e-6) << length;
}

TEST(Ter, StopsShiftingAfterAThousandCandidates) {
  const double expected[] = {31.25, 27.777778, 30.0, 27.272727, 29.166667, 26.923077, 35.714286, 43.333333};
  for (int times = 8; times < 16; ++times) {
    std::string hypothesis, reference;
    for (int i = 0; i < times; ++i) hypothesis += "a b ";
    for (int i = 0; i < times; ++i) reference += i % 2 == 0 ? "b b " : "a a ";
    EXPECT_NEAR(ter(hypothesis, reference), expected[times - 8], 1e-6) << times;
  }
}

TEST(Ter, MemoryGrowsWithTheLengthOfATextNotWithItsSquare) {
  std::string reference, hypothesis;
  for (int i = 0; i < 60'000; ++i) {  // a whole table would take 57 GB
    reference += "w" + std::to_string(i) + " ";
    hypothesis += (i == 30'000 ? "x" : "w" + std::to_string(i)) + " ";
  }
  EXPECT_EQ(make_ter({})->count(hypothesis, std::vector<std::string>{reference}), (Statistics{1, 60'000}));
}

TEST(Ter, WithoutAReferenceEveryWordIsWrong) {
  EXPECT_EQ(ter("a b", ""), 100);
  EXPECT_EQ(ter("", ""), 0);
  EXPECT_EQ(ter("", "a b"), 100);
  const auto metric = make_ter({});
  EXPECT_EQ(metric->count("a b", std::vector<std::string>{""}), (Statistics{2, 0}));
  // Of several references the fewest edits count, and the mean length.
  EXPECT_EQ(metric->count("a b c", std::vector<std::string>{"a b", "x", "a b c d"}),
            (Statistics{1, 7.0 / 3}));
  EXPECT_FALSE(metric->higher_is_better());
  EXPECT_FALSE(TerOptions{}.case_sensitive);
  EXPECT_EQ(ter("A", "a"), 0);
}

}  // namespace calque
