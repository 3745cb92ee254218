#include "calque/train/resume_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/config.h"
#include "calque/base/error.h"

namespace calque {
namespace {

bool may_change(const std::string& key, const std::string& before = "1", const std::string& now = "2") {
  try {
    check_resumable({{key, before, now}});
    return true;
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(key + " is " + before + " in the run and " + now + " now"));
    return false;
  }
}

void add_keys(const Fields& fields, const std::string& prefix, std::vector<std::string>& keys) {
  for (const Field& field : fields) {
    if (field.children.empty())
      keys.push_back(prefix + field.name);
    else
      add_keys(field.children, prefix + field.name + ".", keys);
  }
}

}  // namespace

TEST(ResumeCheck, ChangesAreListedInOrderWithBothValues) {
  RunConfig before, now;
  EXPECT_TRUE(changed_keys(before, now).empty());
  now.seed = 2;
  now.model.layers = before.model.layers + 1;
  now.finetune.lora.rank = 4;
  now.train.tensorboard = true;
  const auto changes = changed_keys(before, now);
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[0].key, "seed");
  EXPECT_EQ(changes[0].before, "1");
  EXPECT_EQ(changes[0].now, "2");
  EXPECT_EQ(changes[1].key, "model.lora.rank");
  EXPECT_EQ(changes[2].key, "model.layers");
  EXPECT_EQ(changes[3].key, "train.tensorboard");
  EXPECT_EQ(changes[3].now, "true");
}

TEST(ResumeCheck, AnAbsoluteAndARelativePathOfOneFileAreTheSame) {
  RunConfig before, now;
  before.tokenizer.path = "a/model";
  now.tokenizer.path = std::filesystem::current_path() / "a/model";
  EXPECT_TRUE(changed_keys(before, now).empty());
  now.tokenizer.path = "b/model";
  EXPECT_EQ(changed_keys(before, now).size(), 1U);
}

TEST(ResumeCheck, WhatDecidesShapesDataOrderOrMeaningIsFixedAndAllElseIsFree) {
  RunConfig config;
  std::vector<std::string> keys, free_of_fixed_sections;
  add_keys(fields(config), "", keys);
  ASSERT_GT(keys.size(), 80U);
  for (const std::string& key : keys) {
    if (key.starts_with("model.") || key.starts_with("tokenizer.")) {
      if (may_change(key)) free_of_fixed_sections.push_back(key);
    } else {
      const bool fixed = key == "seed" || key == "data.max_tokens" || key == "data.shards" ||
                         key == "train.batch_tokens" || key == "train.optimizer" ||
                         key == "distributed.local_steps";
      EXPECT_EQ(may_change(key), !fixed) << key;
    }
  }
  EXPECT_THAT(free_of_fixed_sections,
              testing::IsSupersetOf({"model.init_from", "model.base_lr_scale", "model.layer_lr_decay",
                                     "model.dropout", "tokenizer.path", "tokenizer.sampling"}));
  EXPECT_LE(free_of_fixed_sections.size(), 8U);
}

TEST(ResumeCheck, AveragingMayBecomeFasterButNeitherBeginNorEnd) {
  EXPECT_TRUE(may_change("train.ema_decay", "0.9", "0.99"));
  EXPECT_FALSE(may_change("train.ema_decay", "0", "0.99"));
  EXPECT_FALSE(may_change("train.ema_decay", "0.9", "0"));
  EXPECT_TRUE(may_change("train.weight_decay", "0", "0.1"));
}

TEST(ResumeCheck, AFixedKeyAfterFreeOnesIsFound) {
  EXPECT_THROW(check_resumable({{"run", "a", "b"}, {"model.dropout", "0", "0.1"}, {"seed", "1", "2"}}),
               UserError);
  EXPECT_NO_THROW(check_resumable({{"run", "a", "b"}, {"model.dropout", "0", "0.1"}}));
}

}  // namespace calque
