#include "calque/train/run_config.h"

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
      read_run_config(folder.write("a.yaml", "model: {width: 96, size: tiny}\n"), {"model.layers=3"});
  EXPECT_EQ(config.model.width, 96);
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.model.feed_forward_width, 192);
  EXPECT_EQ(config.run, "a");  // the file's name
}

TEST(RunConfig, WhatCannotEndOrBeNamedIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder, "train: {steps: 0}"), testing::HasSubstr("it would never end"));
  EXPECT_THAT(refusal(folder, "train: {steps: 10, warmup_steps: 10}"),
              testing::HasSubstr("train.warmup_steps=10 leaves nothing"));
  EXPECT_THAT(refusal(folder, "run: ../x"), testing::HasSubstr("no name for a folder"));
  EXPECT_THAT(refusal(folder, "train: {learning_rate: 0}"),
              testing::HasSubstr("a.yaml:1: train.learning_rate: 0 is too small"));
  EXPECT_THAT(refusal(folder, "data: {train: none.tsv}"), testing::HasSubstr("no such file"));
}

}  // namespace calque
