// A run is used where its corpus is not: copied, archived, moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_calque.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MovedRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const fs::path corpus = source_folder() / "data/everyday";
    for (const char* name : {"natural-train.tsv", "natural-test.tsv"}) {
      fs::create_directories(*folder_ / "here/data");
      fs::copy_file(corpus / name, *folder_ / "here/data" / name);
    }
    folder_->write("here/a.yaml",
                   "run: a\ndata: {train: data/natural-train.tsv, valid: data/natural-test.tsv, test: "
                   "data/natural-test.tsv, max_tokens: 100}\ntokenizer: {path: " +
                       (source_folder() / "tests/golden/tokenizer/bpe.model").string() +
                       "}\nmodel: {size: tiny, context_length: 128, attention: causal}\ntrain: "
                       "{batch_tokens: 1024, steps: 40, "
                       "warmup_steps: 10, learning_rate: 5e-3, validate_every: 20, checkpoint_every: 20}\n");
    const Outcome trained = run_calque(*folder_, "--runs here/runs train here/a.yaml");
    ASSERT_EQ(trained.code, 0) << trained.err;
    before_ = run_calque(*folder_, "--runs here/runs translate a", "Bonjour.\n").out;
    // scp -r: plain files and folders, no links; the corpus stays behind.
    fs::create_directories(*folder_ / "there/runs");
    ASSERT_EQ(std::system(("cp -rL '" + (*folder_ / "here/runs/a").string() + "' '" +
                           (*folder_ / "there/runs").string() + "'")
                              .c_str()),
              0);
    fs::rename(*folder_ / "here", *folder_ / "gone");
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome run(const std::string& arguments, const std::string& input = "") {
    return run_calque(*folder_, "--runs there/runs " + arguments, input);
  }

  static TemporaryFolder* folder_;
  static std::string before_;
};
TemporaryFolder* MovedRunTest::folder_ = nullptr;
std::string MovedRunTest::before_;

}  // namespace

TEST_F(MovedRunTest, ItTranslates) {
  EXPECT_EQ(run("translate a", "Bonjour.\n").out, before_);
  EXPECT_EQ(run("translate there/runs/a/checkpoints/best", "Bonjour.\n").out, before_);
}

TEST_F(MovedRunTest, ItsBestCheckpointAloneIsAModel) {
  ASSERT_EQ(std::system(("cp -r '" + (*folder_ / "there/runs/a/checkpoints/best").string() + "' '" +
                         (*folder_ / "elsewhere").string() + "'")
                            .c_str()),
            0);
  EXPECT_EQ(run("translate elsewhere", "Bonjour.\n").out, before_);
}

TEST_F(MovedRunTest, ItIsEvaluatedComparedExportedAndExplored) {
  const std::string data = " --data gone/data/natural-test.tsv";
  EXPECT_EQ(run("evaluate a" + data).code, 0);
  const Outcome missing = run("evaluate a");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("name one: --data FILE.tsv"));
  EXPECT_EQ(run("compare a there/runs/a/checkpoints/last" + data).code, 0);
  EXPECT_EQ(run("export a exported").code, 0);
  const Outcome explored = run("explore trained --model a --set sentences=5 --set bleu=5" + data);
  EXPECT_EQ(explored.code, 0) << explored.out << explored.err;
}

TEST_F(MovedRunTest, ItResumesWithCorrectedPaths) {
  const Outcome lost = run("resume a train.steps=60");
  EXPECT_EQ(lost.code, 2);
  EXPECT_THAT(lost.err, HasSubstr("data.train: "));
  const Outcome found = run(
      "resume a train.steps=60 data.train=gone/data/natural-train.tsv data.valid=gone/data/natural-test.tsv");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.err, HasSubstr("resuming there/runs/a after step 40"));
}

TEST_F(MovedRunTest, AConfigurationOfAnEarlierVersionDoesNotMatter) {
  fs::copy(*folder_ / "there/runs/a", *folder_ / "there/runs/old", fs::copy_options::recursive);
  folder_->write("there/runs/old/config.yaml",
                 "model: {width: 64, no_such_key: 1}\nno_such_section: {a: 2}\n");
  EXPECT_EQ(run("translate old", "Bonjour.\n").out, run("translate a", "Bonjour.\n").out);
}

}  // namespace calque
