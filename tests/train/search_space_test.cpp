#include "calque/train/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "calque/base/error.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string space_refusal(const std::string& yaml) {
  try {
    SearchSpace(yaml, "space.yaml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

double number_after_equals(const std::string& setting) {
  return std::stod(setting.substr(setting.find('=') + 1));
}

}  // namespace

TEST(SearchSpace, ADrawDependsOnSeedAndNumberOnly) {
  const SearchSpace space("train.learning_rate: {log: [1e-4, 1e-2]}\ntrain.batch_tokens: [1024, 2k]\n",
                          "space");
  const auto seventh = space.sample(5, 7);
  space.sample(5, 8);
  EXPECT_EQ(space.sample(5, 7), seventh);
  EXPECT_NE(space.sample(5, 8), seventh);
  EXPECT_NE(space.sample(6, 7), seventh);
}

TEST(SearchSpace, RangesAreCoveredEvenlyOnTheirScale) {
  const SearchSpace space(
      "train.learning_rate: {log: [1e-4, 1e-2]}\nmodel.dropout: {uniform: [0, 0.4]}\n"
      "train.warmup_steps: {uniform: [10, 13]}\n",
      "space");
  int small_rates = 0, small_dropouts = 0;
  std::set<std::string> steps;
  for (int64_t draw = 0; draw < 64; ++draw) {
    const auto settings = space.sample(1, draw);
    ASSERT_THAT(settings, ElementsAre(StartsWith("train.learning_rate="), StartsWith("model.dropout="),
                                      StartsWith("train.warmup_steps=")));
    const double rate = number_after_equals(settings[0]), dropout = number_after_equals(settings[1]);
    EXPECT_GE(rate, 1e-4);
    EXPECT_LE(rate, 1e-2);
    EXPECT_LE(dropout, 0.4);
    small_rates += rate < 1e-3;  // half of a log range
    small_dropouts += dropout < 0.2;
    steps.insert(settings[2]);
  }
  EXPECT_NEAR(small_rates, 32, 3);
  EXPECT_NEAR(small_dropouts, 32, 3);
  EXPECT_THAT(steps, ElementsAre("train.warmup_steps=10", "train.warmup_steps=11", "train.warmup_steps=12",
                                 "train.warmup_steps=13"));
}

TEST(SearchSpace, AChoiceMaySetSeveralKeysTogether) {
  const SearchSpace space(
      "shape:\n  - {model.layers: 2, model.hidden_size: 32}\n  - {model.layers: 1, model.hidden_size: 64}\n"
      "model.layer_types: [[full_attention], [sliding_attention, full_attention]]\n",
      "space");
  std::set<std::string> shapes;
  for (int64_t draw = 0; draw < 8; ++draw) {
    const auto settings = space.sample(1, draw);
    ASSERT_EQ(settings.size(), 3U);
    shapes.insert(settings[0] + " " + settings[1]);
  }
  EXPECT_THAT(shapes,
              ElementsAre("model.layers=1 model.hidden_size=64", "model.layers=2 model.hidden_size=32"));
}

TEST(SearchSpace, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(space_refusal("train.steps: [1]\ntrain.learning_rat: [1e-3]\n"),
            "space.yaml:2: train.learning_rat: no such key; did you mean train.learning_rate?");
  EXPECT_THAT(space_refusal("model.dropout: [0, 1.5]\n"), StartsWith("space.yaml:1: model.dropout: "));
  EXPECT_THAT(space_refusal("model.dropout: 0.1\n"), HasSubstr("expected a list of values"));
  EXPECT_THAT(space_refusal("model.dropout: []\n"), HasSubstr("expected a list of values"));
  EXPECT_THAT(space_refusal("model.dropout: {lin: [0, 1]}\n"), HasSubstr("expected a list of values"));
  EXPECT_THAT(space_refusal("model.dropout: {uniform: [0.1]}\n"), HasSubstr("a range has two values"));
  EXPECT_THAT(space_refusal("model.dropout: {uniform: [0.2, 0.1]}\n"), HasSubstr("the range is empty"));
  EXPECT_THAT(space_refusal("model.dropout: {log: [0, 0.1]}\n"), HasSubstr("a log range begins above 0"));
  EXPECT_THAT(space_refusal("model.norm: {uniform: [rms, layer]}\n"), HasSubstr("\"rms\" is not a number"));
  EXPECT_EQ(space_refusal("model.layers: [1, 2]\nshape: [{model.layers: 3}]\n"),
            "space.yaml:2: model.layers: varied twice");
  EXPECT_THAT(space_refusal(""), HasSubstr("expected a mapping"));
  EXPECT_THAT(space_refusal("a: [1\n"), HasSubstr("not valid YAML"));
}

TEST(SearchSpace, TheDefaultFitsTheConfiguration) {
  RunConfig config;
  EXPECT_EQ(space_refusal(default_space(config)), "accepted");
  EXPECT_THAT(default_space(config), HasSubstr("tokenizer.vocabulary: [4000, 8000, 16000]"));
  config.model.heads = 5;  // which cannot be halved
  config.model.hidden_size = 320;
  EXPECT_THAT(default_space(config), HasSubstr("shape:\n  - {model.hidden_size: 320, model.heads: 5,"));
  config.model.heads = 1;
  config.model.kv_heads = 1;
  EXPECT_EQ(space_refusal(default_space(config)), "accepted");
  config.finetune.init_from = "base";  // its shape and vocabulary are given
  const std::string space = default_space(config);
  EXPECT_EQ(space.find("vocabulary"), std::string::npos);
  EXPECT_EQ(space.find("layers"), std::string::npos);
}

}  // namespace calque
