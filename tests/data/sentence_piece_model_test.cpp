// What is specific to SentencePiece models; tokenizer_test.cpp has what all tokenizers have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calque/base/file.h"
#include "calque/data/tokenizer_model.h"
#include "data/small_pieces.h"
#include "temporary_folder.h"

namespace calque {
namespace {

std::shared_ptr<const TokenizerModel> base_model() {
  return make_sentence_piece_model(read_file(source_folder() / "checkpoints/base/tokenizer.model"), "base");
}

}  // namespace

TEST(SentencePieceModel, ThePartsOfAPieceAreThoseThatMergingItPassesThrough) {
  const auto model = base_model();
  const int32_t id = model->find("▁maison").value();
  const std::vector<int32_t> parts = model->parts_of(id);
  EXPECT_THAT(parts, testing::Contains(id));
  for (const char* character : {"▁", "m", "a", "i", "s", "o", "n"})
    EXPECT_THAT(parts, testing::Contains(model->find(character).value())) << character;
  for (const int32_t part : parts)
    EXPECT_NE(model->piece(id).find(model->piece(part)), std::string::npos) << model->piece(part);
  // Merging seven symbols into one takes six merges.
  EXPECT_EQ(parts.size(), 1U + 7 + 6);
}

TEST(SentencePieceModel, ControlAndBytePiecesHaveNoOtherParts) {
  const auto model = base_model();
  for (const int32_t id :
       {model->unknown_id(), model->begin_id(), model->find("<sep>").value(), model->find("<0x41>").value()})
    EXPECT_EQ(model->parts_of(id), std::vector<int32_t>{id});
}

TEST(SentencePieceModel, PrunedToTheirPartsPiecesAreStillMerged) {
  const auto model = base_model();
  std::set<int32_t> kept = {model->unknown_id(), model->begin_id(), model->end_id()};
  for (int32_t id = 0; id < model->size(); ++id) {
    if (model->is_byte(id)) kept.insert(id);
  }
  const std::vector<int32_t> ids = model->encode("une pomme rouge dans la maison");
  for (const int32_t id : ids) {
    for (const int32_t part : model->parts_of(id)) kept.insert(part);
  }
  const std::vector<int32_t> order(kept.begin(), kept.end());
  const auto pruned = make_sentence_piece_model(model->pruned(order), "pruned");
  EXPECT_EQ(pruned->size(), static_cast<int32_t>(order.size()));
  std::vector<std::string> before, after;
  for (const int32_t id : ids) before.push_back(model->piece(id));
  for (const int32_t id : pruned->encode("une pomme rouge dans la maison"))
    after.push_back(pruned->piece(id));
  EXPECT_EQ(after, before);
  EXPECT_EQ(pruned->piece(pruned->unknown_id()), "<unk>");
  EXPECT_EQ(pruned->piece(pruned->begin_id()), "<s>");
  EXPECT_EQ(pruned->piece(pruned->end_id()), "</s>");
}

TEST(SentencePieceModel, PrunedPiecesKeepTheOrderTheyAreGivenIn) {
  const auto model = make_sentence_piece_model(letters_file().serialize(), "letters");
  const auto pruned =
      make_sentence_piece_model(model->pruned(std::vector<int32_t>{2, 4, 1, 0, 5, 7}), "pruned");
  EXPECT_EQ(pruned->size(), 6);
  EXPECT_EQ(pruned->end_id(), 0);
  EXPECT_EQ(pruned->piece(1), "a");
  EXPECT_EQ(pruned->begin_id(), 2);
  EXPECT_EQ(pruned->unknown_id(), 3);
  EXPECT_EQ(pruned->find("ab"), 5);
  EXPECT_EQ(pruned->find("c"), std::nullopt);
}

TEST(SentencePieceModel, PiecesAreKnownByTheirTextAndKind) {
  const auto model = make_sentence_piece_model(letters_file().serialize(), "letters");
  EXPECT_EQ(model->find("<unk>"), 0);
  EXPECT_EQ(model->find("</s>"), 2);
  EXPECT_EQ(model->find("nowhere"), std::nullopt);
  EXPECT_TRUE(model->begins_word(3) && model->begins_word(10));
  EXPECT_FALSE(model->begins_word(4) || model->begins_word(9));
  EXPECT_TRUE(model->is_control(1) && model->is_control(2));
  EXPECT_FALSE(model->is_control(0) || model->is_control(4) || model->is_byte(4));
  EXPECT_TRUE(base_model()->is_byte(base_model()->find("<0x41>").value()));
  EXPECT_STREQ(model->file_name(), "tokenizer.model");
}

TEST(SentencePieceModel, ThePairWithTheHigherScoreIsMergedFirstThenTheLeftmost) {
  const auto parts = [](float score_of_ab, float score_of_bc) {
    const auto model = make_sentence_piece_model(letters_file(score_of_ab, score_of_bc).serialize(), "t");
    std::vector<std::string> texts;
    for (const int32_t id : model->parts_of(9)) texts.push_back(model->piece(id));
    return texts;
  };
  using testing::ElementsAre;
  EXPECT_THAT(parts(-1, -2), ElementsAre("abc", "a", "b", "c", "ab", "abc"));
  EXPECT_THAT(parts(-2, -1), ElementsAre("abc", "a", "b", "c", "bc", "abc"));
  EXPECT_THAT(parts(-2, -2), ElementsAre("abc", "a", "b", "c", "ab", "abc"));
  const auto model = make_sentence_piece_model(letters_file().serialize(), "t");
  EXPECT_EQ(model->parts_of(3), (std::vector<int32_t>{3, 3}));  // "▁" is one character of three bytes
}

}  // namespace calque
