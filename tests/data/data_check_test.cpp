#include "calque/data/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

// One kind of finding, with the line and text of its first example.
struct Seen {
  int64_t count = 0;
  bool fatal = false;
  int64_t line = 0;
  std::string text;
};

std::map<std::string, Seen> check(const DataConfig& config, const Tokenizer* tokenizer = nullptr) {
  std::map<std::string, Seen> seen;
  for (const DataFinding& one : check_data(config, tokenizer, 3).findings) {
    seen[one.kind] = {one.count, one.fatal, one.examples.at(0).line, one.examples.at(0).text};
  }
  return seen;
}

class DataCheckTest : public testing::Test {
 protected:
  std::map<std::string, Seen> check_tsv(const std::string& content) {
    DataConfig config;
    config.train = {tsv_part(folder_.write("train.tsv", good_ + content))};
    return check(config);
  }
  TemporaryFolder folder_;
  const std::string good_ =
      "Je ne sais pas où il est.\tI do not know where he is.\n";  // one line without problems
};

#define EXPECT_ONLY(findings, kind, expected_count, expected_fatal, expected_line) \
  do {                                                                             \
    const auto result = findings;                                                  \
    ASSERT_EQ(result.size(), 1u);                                                  \
    EXPECT_EQ(result.begin()->first, kind);                                        \
    EXPECT_EQ(result.begin()->second.count, expected_count);                       \
    EXPECT_EQ(result.begin()->second.fatal, expected_fatal);                       \
    EXPECT_EQ(result.begin()->second.line, expected_line);                         \
  } while (false)

}  // namespace

TEST_F(DataCheckTest, GoodDataHasNoFindings) { EXPECT_TRUE(check_tsv("").empty()); }

TEST_F(DataCheckTest, FindsEmptyLines) {
  EXPECT_ONLY(check_tsv("\n\tone\nun\t \n"), "empty-line", 3, false, 2);
}
TEST_F(DataCheckTest, FindsCarriageReturns) {
  EXPECT_ONLY(check_tsv("un chat\ta cat\r\n"), "carriage-return", 1, false, 2);
}
TEST_F(DataCheckTest, FindsInvalidUtf8) {
  EXPECT_ONLY(check_tsv("caf\xe9\tcoffee\n"), "invalid-utf8", 1, true, 2);
  EXPECT_THAT(check_tsv("caf\xe9\tcoffee\n")["invalid-utf8"].text, testing::StartsWith("byte 4 (0xe9)"));
}
TEST_F(DataCheckTest, FindsMissingTabs) {
  EXPECT_ONLY(check_tsv("un chat a cat\n"), "missing-tab", 1, true, 2);
}
TEST_F(DataCheckTest, ChosenColumnsMayHaveOthersBesideThem) {
  DataConfig config;
  config.train = {tsv_part(folder_.write("train.tsv", "7\t" + good_ + "8\tun\n"))};
  config.train[0].columns = {2, 3};
  EXPECT_ONLY(check(config), "missing-tab", 1, true, 2);
}
TEST_F(DataCheckTest, ACarriageReturnIsReportedForTheFileThatHasIt) {
  DataConfig config;
  CorpusPart part;
  part.source = folder_.write("a.fr", "Je ne sais pas où il est.\n");
  part.target = folder_.write("a.en", "I do not know where he is.\r\n");
  config.train = {part};
  const auto findings = check_data(config, nullptr, 3).findings;
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "carriage-return");
  EXPECT_THAT(findings[0].examples.at(0).file, testing::EndsWith("a.en"));
}
TEST_F(DataCheckTest, FindsExtraTabs) { EXPECT_ONLY(check_tsv("un\tone\tCC-BY\n"), "extra-tab", 1, true, 2); }
TEST_F(DataCheckTest, FindsControlCharacters) {
  EXPECT_ONLY(check_tsv("un\x07 chat\ta cat\n"), "control-character", 1, false, 2);
  EXPECT_ONLY(check_tsv("un\xc2\x85 chat\ta cat\n"), "control-character", 1, false, 2);
}
TEST_F(DataCheckTest, FindsDuplicates) {
  EXPECT_ONLY(check_tsv(good_ + good_), "duplicate-pair", 2, false, 2);
}
TEST_F(DataCheckTest, FindsUntranslatedPairs) {
  EXPECT_ONLY(check_tsv("Paris\tParis\n"), "source-equals-target", 1, false, 2);
}
TEST_F(DataCheckTest, FindsOddLengthRatios) {
  EXPECT_ONLY(check_tsv("Bonjour\tHello, and by the way, could you please tell me something\n"),
              "length-ratio", 1, false, 2);
}
TEST_F(DataCheckTest, FindsOverLongPairs) {
  std::string lengthy;
  for (int i = 0; i < 200; ++i) lengthy += " mot";
  EXPECT_ONLY(check_tsv("un" + lengthy + "\tone" + lengthy + "\n"), "too-long", 1, false, 2);
}
TEST_F(DataCheckTest, SwappedSidesAreFatalIfMostPairsAreSwapped) {
  DataConfig config;
  config.train = {tsv_part(folder_.write("a.tsv",
                                         "I do not know where he is.\tJe ne sais pas où il est.\n"
                                         "She was in the house.\tElle était dans la maison.\n"))};
  EXPECT_ONLY(check(config), "swapped-sides", 2, true, 1);
  config.train = {tsv_part(folder_.write(
      "b.tsv", good_ + "C'est la vie de mon père et de ma mère.\tIt is the life of my father.\n" +
                   "She was in the house.\tElle était dans la maison.\n"))};
  EXPECT_ONLY(check(config), "swapped-sides", 1, false, 3);
}

TEST_F(DataCheckTest, FindsUnequalLineCounts) {
  DataConfig config;
  CorpusPart part;
  part.source = folder_.write("a.fr", "un chat\nun chien\nun oiseau\nun lapin\n");
  part.target = folder_.write("a.en", "a cat\na dog\n");
  config.train = {part};
  const auto seen = check(config);
  EXPECT_ONLY(seen, "unequal-line-counts", 1, true, 3);
  EXPECT_EQ(seen.at("unequal-line-counts").text, "a.fr has 2 more lines than a.en");
}

TEST_F(DataCheckTest, FindsSentencesOfValidAndTestInTrain) {
  DataConfig config;
  config.train = {
      tsv_part(folder_.write("train.tsv", "un chat\ta cat\nun chien\ta dog\nun oiseau\ta bird\n"))};
  config.valid = {tsv_part(folder_.write("valid.tsv", "un lapin\ta rabbit\nun chat\tone cat\n"))};
  config.test = {
      tsv_part(folder_.write("test.tsv", "le chien\ta dog\nun oiseau\ta bird\nun ours\ta bear\n"))};
  const auto seen = check(config);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen.at("valid-in-train").count, 1);
  EXPECT_EQ(seen.at("valid-in-train").line, 2);
  EXPECT_EQ(seen.at("test-in-train").count, 2);
}

TEST_F(DataCheckTest, CountsUnknownTokensWithATokenizer) {
  DataConfig config;
  config.train = {tsv_part(folder_.write("a.tsv", "le chat 漢\tthe cat\n"))};
  const DataReport report = check_data(config, &small_tokenizer(), 3);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, "unknown-tokens");
  EXPECT_EQ(report.findings[0].count, 3);  // bytes of 漢
  EXPECT_GT(report.unknown_rate.value(), 0.1);
}

TEST_F(DataCheckTest, AnEmptyCorpusAndADamagedFileAreFatal) {
  DataConfig config;
  config.train = {tsv_part(folder_.write("a.tsv", ""))};
  EXPECT_ONLY(check(config), "no-pairs", 1, true, 0);
  config.train = {tsv_part(folder_.write("b.tsv", good_)),
                  tsv_part(folder_.write("c.tsv", std::string(17 << 20, 'x')))};
  EXPECT_ONLY(check(config), "unreadable", 1, true, 0);
  config.train = {tsv_part(folder_.path())};
  EXPECT_THROW(check(config), UserError);
  config.train = {tsv_part(folder_ / "none.tsv")};
  EXPECT_THROW(check(config), UserError);
}

}  // namespace calque
