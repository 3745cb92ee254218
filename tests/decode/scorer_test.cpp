#include "calque/decode/scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calque/base/error.h"
#include "decode/search_helpers.h"
#include "decode/small_translator.h"

namespace calque {

TEST(Scorer, ScoresOfManyPairsAreThoseOfEachAlone) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const SequenceFormat format{{1}, {3}, end_token};
  std::vector<TokenPair> pairs;
  for (const auto& source : sources(150)) pairs.push_back({source, {source.rbegin(), source.rend()}});
  pairs[70].source.assign(94, 5);  // with <s> and <sep> 96, the whole context
  pairs[70].target.clear();
  pairs[71].source.assign(95, 5);
  pairs[71].target.clear();
  const auto together = score_pairs(*decoder, format, pairs);  // more than one batch
  ASSERT_EQ(together.size(), pairs.size());
  double sum = 0, count = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i == 71) continue;
    ASSERT_EQ(together[i].size(), pairs[i].target.size() + 1);
    const auto alone = score_pairs(*decoder, format, {pairs[i]}).front();
    for (size_t t = 0; t < alone.size(); ++t) {
      EXPECT_NEAR(together[i][t], alone[t], 1e-3) << i;
      sum += together[i][t];
    }
    count += static_cast<double>(alone.size());
  }
  EXPECT_TRUE(together[71].empty());  // longer than the context
  EXPECT_NEAR(mean_loss(*decoder, format, pairs), -sum / count, 1e-6);
  EXPECT_TRUE(std::isnan(mean_loss(*decoder, format, {})));
  EXPECT_TRUE(score_pairs(*decoder, format, {}).empty());
}

// Finite weights may overflow.
TEST(Scorer, LogitsThatAreNotFiniteAreRefusedBySearchAndScores) {
  const auto decoder = make_decoder(search_model(AttentionKind::causal));
  {
    const torch::NoGradGuard no_gradients;
    decoder->norm->weight.fill_(3e38F);
    for (auto& parameter : decoder->parameters()) {
      if (parameter.dim() == 2) parameter.mul_(1e3);
    }
  }
  decoder->pack(WeightPrecision::float32);
  const auto refused = testing::ThrowsMessage<UserError>(testing::HasSubstr("logits are not finite"));
  EXPECT_THAT([&] { score_pairs(*decoder, {{1}, {3}, end_token}, {{{5, 6}, {7}}}); }, refused);
  SearchOptions options = options_with(2);
  EXPECT_THAT([&] { run_search(*decoder, options, {{5, 6}}, {}); }, refused);
  options.decode.sample = true;
  EXPECT_THAT([&] { run_search(*decoder, options, {{5, 6}}, {}); }, refused);
}

TEST(Scorer, ScoresTheLinesOfAFileInOrder) {
  const TemporaryFolder folder;
  const Translator translator = make_translator();
  std::string tsv;
  for (int i = 0; i < 1030; ++i)
    tsv += "Oui\u00a0.\tYes " + std::to_string(i % 7) + "\n";  // two blocks and a bit
  CorpusPart part;
  part.pairs = folder.write("a.tsv", tsv);
  PairReader reader(part);
  const Tokenizer& tokenizer = translator.tokenizer();
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 7; ++i)
    expected.push_back(
        score_pairs(translator.decoder(), translator.format(),
                    {{tokenizer.encode("Oui ."), tokenizer.encode("Yes " + std::to_string(i))}})
            .front());
  size_t lines = 0;
  score_lines(translator, reader, [&](const ScoredPair& pair) {
    const size_t which = lines++ % 7;
    ASSERT_EQ(pair.log_probabilities.size(), expected[which].size());
    for (size_t t = 0; t < expected[which].size(); ++t)
      ASSERT_NEAR(pair.log_probabilities[t], expected[which][t], 1e-4);
    ASSERT_EQ(pair.tokens.size(), pair.log_probabilities.size());
    EXPECT_EQ(pair.tokens.back(), "</s>");
    EXPECT_EQ(pair.tokens.front(), "▁Y");
  });
  EXPECT_EQ(lines, 1030U);
  std::string lengthy;
  for (int i = 0; i < 300; ++i) lengthy += " mot";
  part.pairs = folder.write("b.tsv", "\nOui\tYes\nOui\t" + lengthy + "\n");
  PairReader longer(part);
  EXPECT_THAT([&] { score_lines(translator, longer, [](const ScoredPair&) {}); },
              testing::ThrowsMessage<UserError>("line 3: the pair is longer than the model's context"));
}

TEST(Scorer, APairIsShownWithItsSumAndMean) {
  const ScoredPair pair{{"a", "</s>"}, {-1.5F, -0.25F}};
  EXPECT_EQ(pair.log_probability(), -1.75);
  EXPECT_EQ(pair.to_text(), "-1.7500\t-0.8750\n");
  EXPECT_EQ(pair.to_json().dump(),
            R"({"log_probability":-1.75,"token_log_probabilities":[-1.5,-0.25],"tokens":["a","</s>"]})");
}

}  // namespace calque
