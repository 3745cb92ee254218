#include "calque/runs/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "temporary_folder.h"

namespace calque {
namespace {

std::string refusal(const TemporaryFolder& folder, const std::string& yaml) {
  try {
    read_run_config(folder.write("a.yaml", yaml), {});
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(RunConfig, ANamedSizeIsAStartThatOtherKeysRefine) {
  const TemporaryFolder folder;
  const RunConfig config =
      read_run_config(folder.write("a.yaml", "model: {hidden_size: 96, size: tiny}\n"), {"model.layers=3"});
  EXPECT_EQ(config.model.hidden_size, 96);
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.model.mlp_size, 192);
  EXPECT_EQ(config.run, "a");  // the file's name
}

TEST(RunConfig, AutomaticThreadsAreZero) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_run_config(folder.write("a.yaml", "train: {threads: auto}\n"), {}).train.threads, 0);
  EXPECT_EQ(read_run_config(folder / "a.yaml", {"train.threads=3"}).train.threads, 3);
  EXPECT_THAT(refusal(folder, "train: {threads: all}"), testing::HasSubstr("train.threads"));
}

// The one that was set on the command line is the one to look at.
TEST(RunConfig, OfTwoKeysThatDoNotFitTheOneOfTheCommandLineIsNamed) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.yaml", "train: {warmup_steps: 100, steps: 1000}\n");
  EXPECT_THAT([&] { read_run_config(file, {"train.steps=50"}); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("command line: train.warmup_steps=100")));
}

TEST(RunConfig, WhatCannotEndOrBeNamedIsRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_run_config(folder.write("a.yaml", "train: {steps: 0}"), {}).train.steps, default_steps);
  EXPECT_EQ(read_run_config(folder.write("a.yaml", "train: {epochs: 100}"), {}).train.steps, 0);
  EXPECT_THAT(refusal(folder, "train: {steps: 10, warmup_steps: 10}"),
              testing::HasSubstr("train.warmup_steps=10 is not less than train.steps=10"));
  EXPECT_THAT(refusal(folder, "run: ../x"), testing::HasSubstr("cannot be the name of a folder"));
  EXPECT_THAT(refusal(folder, "train: {learning_rate: 0}"),
              testing::HasSubstr("a.yaml:1: train.learning_rate: 0 is too small"));
  EXPECT_EQ(refusal(folder, "model: {width: 8}"),
            folder.path().string() + "/a.yaml:1: model.width was renamed: use model.hidden_size");
}

TEST(RunConfig, WhatDoesNotFitTogetherIsReportedWhereItWasSet) {
  const TemporaryFolder folder;
  const std::string file = folder.path().string() + "/a.yaml";
  EXPECT_EQ(
      refusal(folder, "model:\n  context_length: 100\ndata: {max_tokens: 512}"),
      file + ":3: data.max_tokens=512 makes sequences of up to 514 tokens, but model.context_length=100");
  EXPECT_THAT(refusal(folder, "seed: 1\ntrain: {batch_tokens: 100}"),
              testing::StartsWith(file + ":2: train.batch_tokens=100 is too small"));
  EXPECT_THAT(refusal(folder, "seed: 1\ntrain: {steps: 50}"),
              testing::StartsWith(file + ":2: train.warmup_steps"));
  EXPECT_THAT(refusal(folder, "tokenizer: {path: a.model}\nmodel: {init_from: b}"),
              testing::StartsWith(file + ":1: tokenizer.path and model.init_from exclude each other"));
  try {
    read_run_config(folder.write("a.yaml", "seed: 1"), {"run=../x"});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("command line: run"));
  }
}

TEST(RunConfig, ATabInTheIndentationIsNamed) {
  const TemporaryFolder folder;
  for (const char* yaml : {"seed: 1\ndata:\n\ttrain: a.tsv\n", "seed: 1\ndata: {}\n\ttrain: a.tsv\n"})
    EXPECT_THAT(refusal(folder, yaml),
                testing::HasSubstr("a.yaml:3: not valid YAML: a tab in the indentation"));
}

TEST(RunConfig, KeysWithoutEffectAreReported) {
  const TemporaryFolder folder;
  for (const auto& [yaml, warning] : std::vector<std::pair<std::string, std::string>>{
           {"train: {patience: 2, validate_every: 0}", "train.patience has no effect"},
           {"decode: {temperature: 0.5}", "decode.temperature, top_k and top_p have no effect"},
           {"distributed: {outer_momentum: 0.5}", "without distributed.local_steps"},
           {"tokenizer: {path: a.model, train_lines: 5}", "where a tokenizer is given"}}) {
    const auto warnings = config_warnings(read_run_config(folder.write("b.yaml", yaml + "\n"), {}));
    EXPECT_THAT(warnings, testing::Contains(testing::HasSubstr(warning))) << yaml;
  }
  const RunConfig config = read_run_config(
      folder.write("a.yaml",
                   "tokenizer: {path: a.model, vocabulary: 900}\n"
                   "train: {muon_method: newton_schulz, decay_fraction: 0.5, validate_sentences: 7}\n"),
      {});
  EXPECT_EQ(
      config_warnings(config),
      (std::vector<std::string>{"tokenizer.kind, vocabulary and nfkc have no effect beside tokenizer.path",
                                "train.muon_method has no effect without train.optimizer=muon",
                                "train.decay_fraction has no effect without train.schedule=constant",
                                "train.validate_sentences has no effect without data.valid"}));
}

TEST(RunConfig, ReadingDoesNotNeedTheCorpusTrainingDoes) {
  const TemporaryFolder folder;
  const RunConfig config = read_run_config(folder.write("a.yaml", "data: {train: none.tsv}"), {});
  try {
    check_data_files(config.data);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("data.train: "));
    EXPECT_THAT(error.what(), testing::HasSubstr("no such file"));
  }
}

TEST(RunConfig, AStoredOneOfAnEarlierVersionIsUnderstood) {
  const TemporaryFolder folder;
  folder.write("config.yaml",
               "model: {width: 96, rotary_base: 500, gone: 3, positions: rotary}\n"
               "train: {clip: 2, ema: 0.5}\ndecode: {max_length_more: 7}\nextra: {a: 1}\n");
  const RunConfig config = read_stored_run_config(folder.path(), {"train.steps=9"});
  EXPECT_EQ(config.model.hidden_size, 96);
  EXPECT_EQ(config.model.rope_theta, 500);
  EXPECT_EQ(config.model.positions, PositionKind::rope);
  EXPECT_EQ(config.train.max_grad_norm, 2);
  EXPECT_EQ(config.train.ema_decay, 0.5);
  EXPECT_EQ(config.decode.max_length_extra, 7);
  EXPECT_EQ(config.train.steps, 9);
}

}  // namespace calque
