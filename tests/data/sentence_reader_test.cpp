#include "calque/data/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/data/tokenizer_training.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

using testing::ElementsAre;

std::vector<std::string> read_sentences(SentenceReader reader) {
  std::vector<std::string> all;
  for (std::string sentence; reader.next(sentence);) all.push_back(sentence);
  std::string more = "unchanged";
  EXPECT_FALSE(reader.next(more));  // stays at the end
  return all;
}

}  // namespace

TEST(SentenceReader, ReadsSourceThenTargetOfEveryPartCleaned) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "un\u00a0 chat\ta  cat\ndeux\ttwo\n")),
                         tsv_part(folder.write("b.tsv", "trois\tthree\n"))};
  EXPECT_THAT(read_sentences(SentenceReader(corpus)),
              ElementsAre("un chat", "a cat", "deux", "two", "trois", "three"));
  CorpusPart text;
  text.text = folder.write("c.txt", "one\ntwo\n");
  EXPECT_THAT(read_sentences(SentenceReader({text})), ElementsAre("one", "two"));
  EXPECT_TRUE(read_sentences(SentenceReader({})).empty());
}

TEST(SentenceReader, AStrideTakesEveryNthPairAcrossTheParts) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "a\tA\nb\tB\nc\tC\n")),
                         tsv_part(folder.write("b.tsv", "d\tD\ne\tE\n"))};
  EXPECT_THAT(read_sentences(SentenceReader(corpus, 2)), ElementsAre("a", "A", "c", "C", "e", "E"));
  EXPECT_THAT(read_sentences(SentenceReader(corpus, 4)), ElementsAre("a", "A", "e", "E"));
}

TEST(TokenizerTraining, UsesAtMostTrainLinesSentencesSpreadOverTheCorpus) {
  const TemporaryFolder folder;
  const std::string tsv = small_tsv(400);
  const auto file = folder.write("a.tsv", tsv);
  TokenizerConfig config;
  config.vocabulary = 300;
  const auto trained_on = [&](int64_t stride) {
    SentenceReader reader({tsv_part(file)}, stride);
    return Tokenizer::train(config, [&](std::string& line) { return reader.next(line); }).serialized();
  };
  // 800 sentences: 800 take all pairs, 799 every second, 200 every fourth, 199 every fifth.
  for (const auto& [lines, stride] :
       std::vector<std::pair<int64_t, int64_t>>{{2'000'000, 1}, {800, 1}, {799, 2}, {200, 4}, {199, 5}}) {
    config.train_lines = lines;
    EXPECT_EQ(train_tokenizer(config, {tsv_part(file)}).serialized(), trained_on(stride)) << lines;
  }
  EXPECT_NE(trained_on(1), trained_on(2));
  EXPECT_NE(trained_on(4), trained_on(5));
}

TEST(TokenizerTraining, ACorpusWithoutSentencesIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { train_tokenizer({}, {tsv_part(folder.write("a.tsv", "\n"))}); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("no sentences to train")));
}

}  // namespace calque
