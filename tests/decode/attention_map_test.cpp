#include "calque/decode/attention_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/decode/words.h"
#include "calque/model/batch_layout.h"
#include "decode/search_helpers.h"
#include "decode/small_translator.h"

namespace calque {

TEST(Words, PiecesAreGroupedIntoTheWordsTheyForm) {
  const Tokenizer tokenizer = golden_tokenizer();
  const auto ids = tokenizer.encode("Le petit chat dort.");
  const PieceWords words = words_of(tokenizer, ids);
  EXPECT_THAT(words.words, testing::ElementsAre("Le", "petit", "chat", "dort."));
  ASSERT_EQ(words.word_of.size(), ids.size());
  EXPECT_GT(ids.size(), 4U);  // some have several pieces
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(words.word_of[i], words.word_of[i - 1] + (tokenizer.begins_word(ids[i]) ? 1 : 0));
    }
  }
  EXPECT_EQ(words.word_of.front(), 0U);
  EXPECT_EQ(words.word_of.back(), 3U);
  // The first piece begins a word in any case. A byte that is no character by itself has a mark.
  const Tokenizer bytes = Tokenizer::load(source_folder() / "tests/golden/tokenizer/byte-level.json");
  EXPECT_THAT(words_of(bytes, {bytes.find("Ã").value()}).words, testing::ElementsAre("·"));
  EXPECT_THAT(words_of(bytes, bytes.encode(" ça")).words, testing::ElementsAre("ça"));
  EXPECT_TRUE(words_of(tokenizer, {}).words.empty());
}

TEST(AttentionMap, AlignmentIsRelativeToTheMeanOfEachSourceWord) {
  AttentionMap map;
  map.source = {"a", "b"};
  map.weights = {{0.2, 0.8}, {0.6, 0.4}};  // means 0.4 and 0.6
  const auto alignment = map.alignment();
  EXPECT_THAT(alignment[0],
              testing::ElementsAre(testing::DoubleEq(0.5), testing::DoubleNear(4.0 / 3, 1e-12)));
  EXPECT_THAT(alignment[1],
              testing::ElementsAre(testing::DoubleNear(1.5, 1e-12), testing::DoubleNear(2.0 / 3, 1e-12)));
}

// Against the attention weights that a hook sees.
TEST(AttentionMap, WeightsAreThoseOfTheRowsThatPredictTheWords) {
  const Translator translator = make_translator();
  const auto sharp = sharp_decoder(translator.decoder().config());
  const Decoder& decoder = *sharp;
  const Tokenizer& tokenizer = translator.tokenizer();
  const auto source = tokenizer.encode("Le petit chat dort."), target = tokenizer.encode("The little cat.");
  Batch batch;
  batch.add(translator.format(), source, target);
  std::vector<torch::Tensor> layers;  // [heads, rows that are asked for, rows]
  const Hook hook = [&](const std::string& name, const torch::Tensor& value) {
    if (name.ends_with("attention.weights.0")) layers.push_back(value.to(torch::kFloat64));
  };
  const torch::NoGradGuard no_gradients;
  decoder.hidden(index_tensor(batch.tokens), batch_layout(batch, decoder.config()), &hook);
  ASSERT_EQ(layers.size(), 2U);
  const PieceWords source_words = words_of(tokenizer, source), target_words = words_of(tokenizer, target);

  // The weight of target word t on source word s before rows are made to sum to 1.
  const auto weight = [&](size_t t, size_t s, const AttentionHead& which) {
    double sum = 0;
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      if (which.layer && *which.layer != static_cast<int64_t>(layer)) continue;
      const int64_t rows = layers[layer].size(1), heads = layers[layer].size(0);
      for (int64_t head = 0; head < heads; ++head) {
        if (which.head && *which.head != head) continue;
        for (size_t i = 0; i <= target.size(); ++i) {
          if ((i < target.size() ? target_words.word_of[i] : target_words.words.size()) != t) continue;
          const int64_t row = rows - std::ssize(target) - 1 + static_cast<int64_t>(i);
          for (size_t j = 0; j < source.size(); ++j) {
            if (source_words.word_of[j] == s)  // behind <s>
              sum += layers[layer][head][row][1 + static_cast<int64_t>(j)].item<double>();
          }
        }
      }
    }
    return sum;
  };
  for (const AttentionHead& which : std::vector<AttentionHead>{{}, {0, {}}, {1, 2}, {{}, 3}}) {
    const AttentionMap map = map_attention(decoder, tokenizer, translator.format(), source, target, which);
    ASSERT_EQ(map.target.size(), 4U);
    EXPECT_EQ(map.target.back(), "(end)");
    for (size_t t = 0; t < map.target.size(); ++t) {
      double total = 0;
      for (size_t s = 0; s < map.source.size(); ++s) total += weight(t, s, which);
      for (size_t s = 0; s < map.source.size(); ++s)
        EXPECT_NEAR(map.weights[t][s], weight(t, s, which) / total, 1e-6) << t << " " << s;
    }
  }
  const AttentionMap nothing = map_attention(decoder, tokenizer, translator.format(), {}, target);
  EXPECT_TRUE(nothing.source.empty());
}

}  // namespace calque
