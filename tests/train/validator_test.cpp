#include "calque/train/validator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calque/base/log.h"
#include "distributed/ranks.h"
#include "train/evaluation_loss.h"
#include "train/small_run.h"

namespace calque {
namespace {

using nlohmann::json;

class ValidatorTest : public testing::Test {
 protected:
  ValidatorTest()
      : config_(small_run(folder_)),
        cache_(folder_ / "cache", 2),
        tokenizer_(choose_tokenizer(config_, cache_)) {
    log::start(log::Verbosity::quiet);
    std::string pairs;
    for (int i = 0; i < 6; ++i)
      pairs += "Voici " + std::to_string(i) + ".\tHere is " + std::to_string(i) + ".\n";
    config_.data.valid.front().pairs = folder_.write("valid.tsv", pairs);
  }
  Trainer trainer() const {
    return {make_model(config_, tokenizer_, torch::kCPU), config_.train, 1, torch::kCPU};
  }

  TemporaryFolder folder_;
  RunConfig config_;
  DataCache cache_;
  Tokenizer tokenizer_;
};

}  // namespace

TEST_F(ValidatorTest, LossIsOfAllPairsAndSamplesGoRoundTheSentences) {
  const Validator validator(config_, tokenizer_, cache_);
  EXPECT_FALSE(validator.empty());
  EXPECT_TRUE(validator.translates());
  EXPECT_EQ(validator.skipped(), 0);
  Trainer trained = trainer();
  const ValidationResult result = validator.validate(trained, 4);
  EXPECT_DOUBLE_EQ(result.loss,
                   evaluation_loss(trained, validation_batches(config_, tokenizer_, cache_).batches));
  EXPECT_GT(result.seconds, 0);
  EXPECT_LT(result.seconds, 3600);
  ASSERT_TRUE(result.bleu.has_value());
  ASSERT_EQ(result.samples.size(), 4U);
  const char* sources[] = {"Voici 4.", "Voici 5.", "Voici 0.", "Voici 1."};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(result.samples[i].source, sources[i]);
    EXPECT_EQ(result.samples[i].reference.substr(8, 1), result.samples[i].source.substr(6, 1));
  }
}

TEST_F(ValidatorTest, RanksFindWhatOneFinds) {
  config_.data.max_tokens = 20;
  config_.train.batch_tokens = 40;  // several batches, whose sums round
  const Validator validator(config_, tokenizer_, cache_);
  Trainer alone = trainer();
  const ValidationResult expected = validator.validate(alone, 1);
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, [&](ProcessGroup& group) {
      const std::shared_ptr<ProcessGroup> view(std::shared_ptr<void>(), &group);
      Trainer one(make_model(config_, tokenizer_, torch::kCPU), config_.train, 1, torch::kCPU, {},
                  {view, {}});
      const ValidationResult result = validator.validate(one, 1);
      EXPECT_EQ(result.loss, expected.loss);
      EXPECT_EQ(result.bleu, expected.bleu);
      ASSERT_EQ(result.samples.size(), expected.samples.size());
      for (size_t i = 0; i < result.samples.size(); ++i)
        EXPECT_EQ(result.samples[i].hypothesis, expected.samples[i].hypothesis);
    });
  }
}

TEST_F(ValidatorTest, TranslatesGreedilyAndScoresWithBleu) {
  config_.data.valid.front().pairs =
      folder_.write("learnt.tsv", "Bonjour.\tHello.\nMerci.\tThank you.\nIl dort.\tHe is asleep now.\n");
  const Validator validator(config_, tokenizer_, cache_);
  Trainer trained = trainer();
  const auto batches = validation_batches(config_, tokenizer_, cache_).batches;
  for (int i = 0; i < 150; ++i) trained.step(batches.front(), 1e-2);
  const ValidationResult result = validator.validate(trained, 0);
  // Learnt by heart: what is translated is scored against the references.
  EXPECT_NEAR(*result.bleu, 100, 1e-6);
  ASSERT_EQ(result.samples.size(), 3U);
  EXPECT_EQ(result.samples[2].hypothesis, "He is asleep now.");
}

TEST_F(ValidatorTest, AsManySentencesAsConfiguredAreTranslated) {
  config_.train.validate_sentences = 3;
  Trainer trained = trainer();
  EXPECT_EQ(Validator(config_, tokenizer_, cache_).validate(trained, 0).samples.size(), 3U);
  config_.train.validate_sentences = 0;
  const Validator none(config_, tokenizer_, cache_);
  EXPECT_FALSE(none.translates());
  EXPECT_FALSE(none.validate(trained, 0).bleu.has_value());
  CorpusPart text;
  text.text = folder_.write("valid.txt", "le chat\n");
  config_.data.valid = {text};
  config_.train.validate_sentences = 3;
  EXPECT_FALSE(Validator(config_, tokenizer_, cache_).translates());
  config_.data.valid.clear();
  EXPECT_TRUE(Validator(config_, tokenizer_, cache_).empty());
}

TEST(ValidationResult, JsonHasSamplesWhereSentencesWereTranslated) {
  ValidationResult result;
  result.loss = 2;
  result.seconds = 1.5;
  result.samples = {{"s", "r", "h"}};
  EXPECT_EQ(result.to_json(),
            (json{{"valid_loss", 2.0}, {"valid_perplexity", std::exp(2.0)}, {"valid_seconds", 1.5}}));
  result.bleu = 12.5;
  EXPECT_EQ(result.to_json(),
            (json{{"valid_loss", 2.0},
                  {"valid_perplexity", std::exp(2.0)},
                  {"valid_seconds", 1.5},
                  {"valid_bleu", 12.5},
                  {"samples", {{{"source", "s"}, {"reference", "r"}, {"hypothesis", "h"}}}}}));
  EXPECT_EQ(ValidationResult().to_json(),
            (json{{"valid_loss", 0}, {"valid_perplexity", 1}, {"valid_seconds", 0}}));
}

}  // namespace calque
