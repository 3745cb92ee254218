// What is specific to SentencePiece models; tokenizer_test.cpp has what all tokenizers have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calque/base/file.h"
#include "calque/data/tokenizer_model.h"
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

}  // namespace calque
