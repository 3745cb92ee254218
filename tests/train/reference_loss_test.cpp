#include "calque/train/reference_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "calque/data/sequence.h"
#include "temporary_folder.h"
#include "tiny_model.h"

namespace calque {
namespace {

// A model that knows nothing: every token of its vocabulary is equally likely.
Translator know_nothing(const Tokenizer& tokenizer) {
  auto decoder = make_decoder(tiny_config(tokenizer.size()));
  const torch::NoGradGuard no_gradients;
  for (auto& parameter : decoder->parameters()) parameter.zero_();
  return {decoder, tokenizer, {}};
}

Corpus pairs_file(const TemporaryFolder& folder, const std::string& text) {
  CorpusPart part;
  part.pairs = folder.write("valid.tsv", text);
  return {part};
}

Tokenizer golden_tokenizer() { return Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model"); }

}  // namespace

TEST(ReferenceLoss, IsPerByteOfTheReferencesWithTheirEnds) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = golden_tokenizer();
  const ReferenceLoss loss(pairs_file(folder, "Oui.\tYes, sir.\nNon.\tNo.\n"));
  const auto tokens =
      static_cast<double>(tokenizer.encode("Yes, sir.").size() + tokenizer.encode("No.").size() + 2);
  const BitsPerByte found = loss.measure(know_nothing(tokenizer));
  EXPECT_NEAR(found.bits_per_byte, tokens * std::log2(tokenizer.size()) / 12, 1e-4);
  EXPECT_DOUBLE_EQ(found.tokens_per_byte, tokens / 12);
}

TEST(ReferenceLoss, APairThatOneModelCannotReadIsLeftOutForAll) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = golden_tokenizer();
  const SequenceFormat format = pair_format(tokenizer, "");
  std::string words;
  for (int i = 0; i < 30; ++i) words += "maison ";
  ReferenceLoss loss(pairs_file(folder, "Oui.\tYes, sir.\nNon.\tNo.\n" + words + "\tHouses.\n"));
  EXPECT_EQ(loss.pairs(), 3);
  loss.require(tokenizer, format, 64);
  loss.require(tokenizer, format, 256);
  EXPECT_EQ(loss.pairs(), 2);
  EXPECT_EQ(loss.left_out(), 1);
  const ReferenceLoss without(pairs_file(folder, "Oui.\tYes, sir.\nNon.\tNo.\n"));
  EXPECT_EQ(loss.measure(know_nothing(tokenizer)).bits_per_byte,
            without.measure(know_nothing(tokenizer)).bits_per_byte);
}

}  // namespace calque
