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

TEST_F(DataCheckTest, ControlCharactersAreThoseOfUnicodeAndAByteOrderMark) {
  for (const char* bad : {"\x01", "\x1f", "\x7f", "\xc2\x80", "\xc2\x9f", "\xef\xbb\xbf", "\r"})
    EXPECT_EQ(check_tsv("un " + std::string(bad) + "chat\ta cat\n").count("control-character"), 1U) << bad;
  for (const char* good : {" ", "~", "\xc2\xa0", "é", "漢"})
    EXPECT_EQ(check_tsv("un " + std::string(good) + "chat\ta cat\n").count("control-character"), 0U) << good;
}

TEST_F(DataCheckTest, LengthRatiosUpToTwoAndAHalfAreAccepted) {
  const auto flagged = [&](int source, int target) {
    std::string line;
    for (int i = 0; i < source; ++i) line += "é";
    line += '\t';
    for (int i = 0; i < target; ++i) line += "ü";
    return check_tsv(line + "\n").contains("length-ratio");
  };
  EXPECT_FALSE(flagged(38, 8));  // (38 + 12) / (8 + 12) = 2.5
  EXPECT_TRUE(flagged(39, 8));
  EXPECT_FALSE(flagged(8, 38));
  EXPECT_TRUE(flagged(8, 39));
}

TEST_F(DataCheckTest, WithoutATokenizerThreeBytesCountAsAToken) {
  DataConfig config;
  config.max_tokens = 10;
  const auto flagged = [&](int bytes) {
    const std::string half(static_cast<size_t>(bytes / 2), 'x'),
        rest(static_cast<size_t>((bytes + 1) / 2), 'y');
    config.train = {tsv_part(folder_.write("a.tsv", half + "\t" + rest + "\n"))};
    return check(config).contains("too-long");
  };
  EXPECT_FALSE(flagged(32));
  EXPECT_TRUE(flagged(33));
}

TEST_F(DataCheckTest, SidesLookSwappedByTheirFrequentWords) {
  const auto findings = [&](const std::string& line) {
    DataConfig config;
    config.train = {tsv_part(folder_.write("a.tsv", line + "\n"))};
    return check(config);
  };
  for (const char* swapped : {"the is\tx", "x\tle la", "The, IS!\tx", "the is of le\tle", "don't i'm\tx"}) {
    const auto seen = findings(swapped);
    ASSERT_TRUE(seen.contains("swapped-sides")) << swapped;
    EXPECT_TRUE(seen.at("swapped-sides").fatal);
  }
  for (const char* fine : {"the\tle", "the\tx", "the is le\tx", "the is le\tle", "le la\tthe is",
                           "the is\tthe is", "the is le la\tx", "x\tle la the"})
    EXPECT_FALSE(findings(fine).contains("swapped-sides")) << fine;
  // Fatal only where they outnumber the pairs that look right, which takes two words.
  EXPECT_TRUE(findings("the is\tx\nle\tx").at("swapped-sides").fatal);
  EXPECT_FALSE(findings("the is\tx\nle la\tx").at("swapped-sides").fatal);
  EXPECT_FALSE(findings("the is\tx\nx\tthe is").at("swapped-sides").fatal);
}

TEST_F(DataCheckTest, ProblemsOfTheSecondFileAreReportedThere) {
  DataConfig config;
  CorpusPart part;
  part.source = folder_.write("a.fr", "un chat\nun chien\nun lapin\n\nun ours\nun loup\n");
  part.target = folder_.write("a.en", "a c\xe9t\na \x01 dog\n \na bird\na bear\n");
  config.train = {part};
  const auto report = check_data(config, nullptr, 3);
  std::map<std::string, const DataFinding*> by_kind;
  for (const DataFinding& one : report.findings) by_kind[one.kind] = &one;
  ASSERT_EQ(by_kind.size(), 4U);
  EXPECT_THAT(by_kind.at("invalid-utf8")->examples.at(0).file, testing::EndsWith("a.en"));
  EXPECT_EQ(by_kind.at("invalid-utf8")->examples.at(0).line, 1);
  EXPECT_THAT(by_kind.at("control-character")->examples.at(0).file, testing::EndsWith("a.en"));
  EXPECT_EQ(by_kind.at("control-character")->examples.at(0).line, 2);
  EXPECT_EQ(by_kind.at("empty-line")->count, 2);
  EXPECT_EQ(by_kind.at("empty-line")->examples.at(0).text, "un lapin | ");
  EXPECT_EQ(by_kind.at("empty-line")->examples.at(1).text, " | a bird");
  EXPECT_EQ(by_kind.at("unequal-line-counts")->examples.at(0).text, "a.fr has 1 more lines than a.en");
  EXPECT_EQ(by_kind.at("unequal-line-counts")->examples.at(0).line, 6);
  EXPECT_EQ(report.pairs, 2);
  part.source = folder_.write("b.fr", "un chat\n");
  part.target = folder_.write("b.en", "a cat\na dog\na bird\n");
  config.train = {part};
  const auto seen = check(config);
  EXPECT_ONLY(seen, "unequal-line-counts", 1, true, 2);
  EXPECT_EQ(seen.at("unequal-line-counts").text, "b.en has 2 more lines than b.fr");
}

TEST_F(DataCheckTest, PlainTextIsCheckedLineByLine) {
  DataConfig config;
  CorpusPart text;
  text.text = folder_.write("a.txt", "the is of\n\none\tcolumn\nthe is of\n" + std::string(900, 'x') + "\n");
  config.train = {text};
  auto seen = check(config);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen["empty-line"].line, 2);
  EXPECT_EQ(seen["duplicate-pair"].line, 4);
  EXPECT_EQ(seen["duplicate-pair"].text, "the is of");
  EXPECT_EQ(seen["too-long"].line, 5);
  EXPECT_THAT(seen["too-long"].text, testing::StartsWith("xxx"));
}

TEST_F(DataCheckTest, OnlyTheFirstPairsOfEachPartAreRead) {
  DataConfig config;
  CorpusPart part = tsv_part(folder_.write("a.tsv", "un\tone\n\ndeux\ttwo\nno tab\n"));
  part.first = 2;
  config.train = {part, tsv_part(folder_.write("b.tsv", "trois\tthree\n"))};
  const DataReport report = check_data(config, nullptr, 3);
  EXPECT_EQ(report.pairs, 3);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, "empty-line");
  EXPECT_FALSE(report.fatal());
}

TEST_F(DataCheckTest, EverySplitsFilesMustExist) {
  const auto good = tsv_part(folder_.write("a.tsv", good_));
  for (Corpus DataConfig::*split : {&DataConfig::train, &DataConfig::valid, &DataConfig::test}) {
    DataConfig config;
    config.train = config.valid = config.test = {good};
    EXPECT_NO_THROW(check(config));
    config.*split = {tsv_part(folder_ / "none.tsv")};
    EXPECT_THROW(check(config), UserError);
    config.*split = {good};
    (config.*split)[0].columns = {1};
    EXPECT_THROW(check(config), UserError);
  }
}

TEST_F(DataCheckTest, TheReportCountsWordsAndTokensAndListsTheFirstExamples) {
  DataConfig config;
  config.train = {tsv_part(folder_.write("train.tsv", "le chat 漢\tthe cat\n\n\n\nl'été\tno tab here\tx\n"))};
  config.valid = {tsv_part(folder_.write("valid.tsv", "un\tthe cat 3\n\n"))};
  const DataReport report = check_data(config, &small_tokenizer(), 2);
  const auto tokens = [](const char* text) { return std::ssize(small_tokenizer().encode(text)); };
  EXPECT_NEAR(report.unknown_rate.value(),
              3.0 / static_cast<double>(tokens("le chat 漢") + tokens("the cat") + tokens("un") +
                                        tokens("the cat 3")),
              1e-12);
  const std::string train = (folder_ / "train.tsv").string();
  nlohmann::json json = report.to_json();
  json.erase("unknown_rate");
  EXPECT_EQ(json, nlohmann::json::parse(R"json({"pairs": 2, "splits": {
      "train": {"pairs": 1, "source_words": 3, "target_words": 2},
      "valid": {"pairs": 1, "source_words": 1, "target_words": 3}},
    "findings": [
      {"kind": "extra-tab", "fatal": true, "count": 1,
       "meaning": "more than one tab: expected 2 columns (see `columns`)",
       "examples": [{"file": ")json" + train +
                                        R"json(", "line": 5, "text": "l'été no tab here x"}]},
      {"kind": "empty-line", "fatal": false, "count": 4,
       "meaning": "one or both sides are empty; skipped in training",
       "examples": [{"file": ")json" + train +
                                        R"json(", "line": 2, "text": ""},
                    {"file": ")json" + train +
                                        R"json(", "line": 3, "text": ""}]},
      {"kind": "unknown-tokens", "fatal": false, "count": 3,
       "meaning": "byte-fallback or unknown tokens: characters that are not in the vocabulary",
       "examples": [{"file": ")json" + train +
                                        R"json(", "line": 1, "text": "le chat 漢 | the cat"}]}]})json"));
  EXPECT_TRUE(report.fatal());
  DataReport shown = report;
  shown.unknown_rate = 0.0125;
  EXPECT_EQ(
      shown.to_text(),
      "train             1 pairs             3 source words             2 target words\n"
      "valid             1 pairs             1 source words             3 target words\n"
      "byte-fallback and unknown tokens: 1.250 %\n"
      "\nFATAL    extra-tab                      1  more than one tab: expected 2 columns (see `columns`)\n"
      "  " +
          train +
          ":5: l'été no tab here x\n"
          "\nwarning  empty-line                     4  one or both sides are empty; skipped in training\n"
          "  " +
          train + ":2: \n  " + train +
          ":3: \n  … and 2 more\n"
          "\nwarning  unknown-tokens                 3  byte-fallback or unknown tokens: characters that "
          "are "
          "not in the vocabulary\n"
          "  " +
          train + ":1: le chat 漢 | the cat\n");
  EXPECT_EQ(DataReport{}.to_text(), "no problems found\n");
  EXPECT_EQ(DataReport{}.to_json().dump(), R"({"findings":[],"pairs":0,"splits":{}})");
  DataReport damaged;
  damaged.findings.push_back({"unreadable", "cannot be read", true, 1, {{"a.tsv", 0, "gone"}}});
  EXPECT_EQ(damaged.to_text(),
            "\nFATAL    unreadable                     1  cannot be read\n  a.tsv: gone\n");
  EXPECT_EQ(DataFinding{}.count + DataExample{}.line + DataSplit{}.pairs + DataSplit{}.source_words +
                DataSplit{}.target_words,
            0);
  EXPECT_FALSE(DataFinding{}.fatal);
}

TEST_F(DataCheckTest, RepeatsAreCountedWithinASplit) {
  DataConfig config;
  config.train = config.valid = {tsv_part(folder_.write("a.tsv", good_))};
  EXPECT_FALSE(check(config).contains("duplicate-pair"));
  config.train.push_back(config.train[0]);
  EXPECT_EQ(check(config)["duplicate-pair"].count, 1);
}

// More than are tokenised at once.
TEST_F(DataCheckTest, CountsTensOfThousandsOfPairs) {
  std::string tsv;
  for (int i = 0; i < 9'000; ++i) tsv += "n" + std::to_string(i) + " 漢\tm" + std::to_string(i) + "\n";
  DataConfig config;
  config.train = {tsv_part(folder_.write("a.tsv", tsv))};
  const DataReport report = check_data(config, &small_tokenizer(), 1);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].count, 3 * 9'000);
  EXPECT_EQ(report.pairs, 9'000);
}

}  // namespace calque
