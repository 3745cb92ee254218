#include "calque/runs/distillation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "temporary_folder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DistillationTest : public testing::Test {
 protected:
  DistillationTest() {
    config_.run = "a";
    CorpusPart first, second;
    first.pairs = folder_.write("one.tsv", "un\tone\ndeux\ttwo\n\tempty\ntrois\tthree\n");
    second.pairs = folder_.write("two.tsv", "quatre\tfour\ncinq\tfive\n");
    second.weight = 0.5;
    config_.data.train = {first, second};
    options_.runs = folder_ / "runs";
    fs::create_directories(options_.runs);
  }

  // Says "the SOURCE", copies "trois", and fails after so many sources.
  Teacher teacher(int64_t most = 100) {
    return {"teacher",
            "0123",
            {{"beam", "4"}},
            [this, most](int64_t, const NextSource& next, const Candidates& done) {
              for (int64_t i = 0; i < most; ++i) {
                const auto source = next();
                if (!source) return;
                ++asked_;
                done({*source == "trois" ? *source : "the " + *source});
              }
              throw std::runtime_error("killed");
            }};
  }

  std::string refusal(const Teacher& one) {
    try {
      distill(one, config_, options_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string file(const std::string& name) const { return read_file(folder_ / ("runs/a-distill/" + name)); }

  TemporaryFolder folder_;
  RunConfig config_;
  DistillOptions options_;
  int64_t asked_ = 0;
};

constexpr const char* all_translations = "un\tthe un\ndeux\tthe deux\nquatre\tthe quatre\ncinq\tthe cinq\n";

}  // namespace

TEST_F(DistillationTest, WritesTheTranslationsTheirOriginAndAStudent) {
  options_.weight = 2;
  const DistillResult result = distill(teacher(), config_, options_);
  EXPECT_EQ(result.pairs, 5);
  EXPECT_EQ(result.kept, 4);
  EXPECT_EQ(file("train.tsv"), all_translations);
  const auto origin = nlohmann::json::parse(file("train.json"));
  EXPECT_EQ(origin["teacher"], "teacher");
  EXPECT_EQ(origin["teacher_hash"], "0123");
  EXPECT_EQ(origin["search"]["beam"], "4");
  EXPECT_EQ(origin["counts"]["copied"], 1);
  EXPECT_THAT(result.to_text(), HasSubstr("dropped: a copy of the source"));
  const RunConfig student = read_run_config(result.student, {});
  EXPECT_EQ(student.run, "a-student");
  ASSERT_EQ(student.data.train.size(), 3U);
  EXPECT_EQ(student.data.train[1].weight, 0.5);
  EXPECT_EQ(student.data.train[2].weight, 2);
  EXPECT_TRUE(fs::equivalent(student.data.train[2].pairs, result.corpus));
}

TEST_F(DistillationTest, KilledAtAnyLineItContinuesThere) {
  for (const bool torn : {false, true}) {
    options_.resume = false;
    options_.fresh = true;
    EXPECT_THROW(distill(teacher(3), config_, options_), std::runtime_error);
    EXPECT_FALSE(fs::exists(folder_ / "runs/a-distill/train.tsv"));
    const std::string records = file("translations.tsv");
    EXPECT_EQ(records, "none\tun\tthe un\nnone\tdeux\tthe deux\ncopied\ttrois\ttrois\n");
    if (torn) folder_.write("runs/a-distill/translations.tsv", records.substr(0, records.size() - 3));
    asked_ = 0;
    options_.resume = true;
    options_.fresh = false;
    const DistillResult result = distill(teacher(), config_, options_);
    EXPECT_EQ(asked_, torn ? 3 : 2);
    EXPECT_EQ(file("translations.tsv"), records + "none\tquatre\tthe quatre\nnone\tcinq\tthe cinq\n");
    EXPECT_EQ(result.pairs, 5);
    EXPECT_EQ(file("train.tsv"), all_translations);
  }
}

TEST_F(DistillationTest, WhatDoesNotBelongToTheCorpusIsTranslatedAgain) {
  distill(teacher(), config_, options_);
  folder_.write("runs/a-distill/translations.tsv", "none\tun\tthe un\nnone\tdix\tten\nnone\ttrois\tx\n");
  options_.resume = true;
  distill(teacher(), config_, options_);
  EXPECT_EQ(file("train.tsv"), all_translations);
}

TEST_F(DistillationTest, NothingIsOverwrittenOrMixed) {
  options_.resume = true;
  EXPECT_THAT(refusal(teacher()), HasSubstr("there is nothing to resume"));
  options_.resume = false;
  EXPECT_EQ(refusal(teacher()), "accepted");
  EXPECT_THAT(refusal(teacher()), HasSubstr("exists already"));
  options_.resume = true;
  options_.by = ChooseBy::chrf;
  EXPECT_THAT(refusal(teacher()), HasSubstr("choose_by has changed"));
  options_.by = ChooseBy::bleu;
  folder_.write("one.tsv", "un\tother\n");
  EXPECT_THAT(refusal(teacher()), HasSubstr("corpus_hash has changed"));
}

TEST_F(DistillationTest, AFileOfTranslationsHasALinePerPair) {
  const auto write = [&](const std::string& text) { return file_teacher(folder_.write("a.en", text)); };
  EXPECT_EQ(refusal(write("one\ntwo\nthree\nfour\nfive\n")), "accepted");
  EXPECT_EQ(file("train.tsv"), "un\tone\ndeux\ttwo\ntrois\tthree\nquatre\tfour\ncinq\tfive\n");
  EXPECT_EQ(nlohmann::json::parse(file("train.json"))["counts"]["same_as_reference"], 5);
  options_.fresh = true;
  EXPECT_EQ(refusal(write("one\ntwo\n")), "a.en has 2 lines, but data.train has 5 pairs");
  EXPECT_EQ(refusal(write("1\n2\n3\n4\n5\n6\n")), "a.en has 6 lines, but data.train has 5 pairs");
}

}  // namespace calque
