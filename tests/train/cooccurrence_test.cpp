#include "calque/train/cooccurrence.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>

#include "calque/kernels/threads.h"
#include "temporary_folder.h"
#include "tiny_model.h"

namespace calque {
namespace {

constexpr int64_t words = 20, unused = 3, vocabulary = 2 * words + unused;

// Sentences of four random words, each beside the sentence of their translations: word w becomes words + w.
TokenisedPairs dictionary_pairs(int count) {
  TokenisedPairs pairs;
  std::mt19937 random(1);
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> source(4);
    for (int32_t& word : source) word = static_cast<int32_t>(random() % words);
    for (const int32_t offset : {int32_t{0}, static_cast<int32_t>(words)}) {
      for (const int32_t word : source) pairs.tokens.push_back(offset + word);
      pairs.sentences.push_back(std::ssize(pairs.tokens));
    }
    pairs.pairs.push_back(std::ssize(pairs.tokens));
  }
  return pairs;
}

TEST(Cooccurrence, TranslationsStartOutSimilar) {
  const auto vectors = cooccurrence_vectors(dictionary_pairs(500), vocabulary, 16, 1);
  const auto cosines = vectors.slice(0, 0, words).mm(vectors.slice(0, words, 2 * words).t());
  EXPECT_TRUE(cosines.argmax(1).equal(torch::arange(words)));
}

TEST(Cooccurrence, VectorsHaveNormOneAndTokensThatDoNotOccurHaveNone) {
  const auto norms = cooccurrence_vectors(dictionary_pairs(50), vocabulary, 16, 1).norm(2, 1);
  EXPECT_TRUE(norms.slice(0, 0, 2 * words).allclose(torch::ones({2 * words})));
  EXPECT_TRUE(norms.slice(0, 2 * words).equal(torch::zeros({unused})));
}

// The same from dense matrices, counted and factored in the plainest way.
torch::Tensor dense_vectors(const TokenisedPairs& pairs, int64_t size) {
  const auto options = torch::dtype(torch::kFloat64);
  auto together = torch::zeros({vocabulary, vocabulary}, options), before = torch::zeros_like(together);
  int64_t begin = 0;
  for (const int64_t end : pairs.pairs) {
    auto occurs = torch::zeros({vocabulary}, options);
    for (int64_t i = begin; i < end; ++i) occurs[pairs.tokens[static_cast<size_t>(i)]] = 1;
    together += torch::outer(occurs, occurs);
    begin = end;
  }
  begin = 0;
  for (const int64_t end : pairs.sentences) {
    for (int64_t i = begin + 1; i < end; ++i)
      before[pairs.tokens[static_cast<size_t>(i)]][pairs.tokens[static_cast<size_t>(i - 1)]] += 1;
    begin = end;
  }
  const auto information = [](const torch::Tensor& counts) {
    const auto contexts = counts.sum(0).pow(0.75);
    return (counts / counts.sum(1, true) / (contexts / contexts.sum())).log().nan_to_num(0).clamp_min(0);
  };
  const auto matrix = torch::cat({information(together), information(before), information(before.t())}, 1);
  const auto [left, values, right] = at::linalg_svd(matrix, false);
  auto vectors = left.slice(1, 0, size) * values.slice(0, 0, size).sqrt();
  vectors -= vectors.mean(0, true);
  return vectors / vectors.norm(2, 1, true);
}

TEST(Cooccurrence, EqualsTheDenseFactorisationUpToARotation) {
  const auto pairs = dictionary_pairs(200);
  const auto vectors = cooccurrence_vectors(pairs, vocabulary, 16, 1).slice(0, 0, 2 * words);
  const auto expected = dense_vectors(pairs, 16).slice(0, 0, 2 * words);
  EXPECT_LT((vectors.mm(vectors.t()) - expected.mm(expected.t())).abs().max().item<double>(), 1e-3);
}

TEST(Cooccurrence, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  const auto pairs = dictionary_pairs(100);
  set_num_threads(1);
  const auto one = cooccurrence_vectors(pairs, vocabulary, 16, 1);
  set_num_threads(3);
  EXPECT_TRUE(cooccurrence_vectors(pairs, vocabulary, 16, 1).equal(one));
  EXPECT_FALSE(cooccurrence_vectors(pairs, vocabulary, 16, 2).equal(one));
  set_num_threads(threads);
}

TEST(Cooccurrence, WithoutPairsThereAreNoVectors) {
  EXPECT_TRUE(cooccurrence_vectors({}, vocabulary, 16, 1).equal(torch::zeros({vocabulary, 16})));
}

TEST(Cooccurrence, MoreColumnsThanTokensAreNoProblem) {
  const auto vectors = cooccurrence_vectors(dictionary_pairs(50), vocabulary, 100, 1);
  EXPECT_EQ(vectors.size(1), 100);
  EXPECT_TRUE(vectors.slice(0, 0, 2 * words).norm(2, 1).allclose(torch::ones({2 * words})));
}

class CooccurrenceCorpus : public testing::Test {
 protected:
  CooccurrenceCorpus() {
    std::string pairs, text;
    for (int i = 0; i < 60; ++i) {
      pairs += i % 2 == 0 ? "le chat dort\tthe cat sleeps\n" : "un chien court\ta dog runs\n";
      text += i % 2 == 0 ? "the cat sleeps\n" : "a dog runs\n";
    }
    pairs_.pairs = folder_.write("pairs.tsv", pairs);
    text_.text = folder_.write("text.txt", text);
    TokenizerConfig config;
    config.vocabulary = 290;
    tokenizer_.emplace(Tokenizer::train(config, [this, i = 0](std::string& line) mutable {
      line = i % 2 == 0 ? "le chat dort the cat sleeps" : "un chien court a dog runs";
      return i++ < 20;
    }));
  }
  TemporaryFolder folder_;
  CorpusPart pairs_, text_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(CooccurrenceCorpus, HasTwoSentencesPerPairAndOnePerLineOfText) {
  const auto pairs = tokenise_pairs({pairs_}, *tokenizer_, 100, 1000);
  EXPECT_EQ(pairs.sentences.size(), 120);
  EXPECT_EQ(pairs.pairs.size(), 60);
  EXPECT_EQ(pairs.pairs.back(), pairs.sentences.back());
  EXPECT_EQ(pairs.pairs.back(), std::ssize(pairs.tokens));
  EXPECT_EQ(std::vector<int32_t>(pairs.tokens.begin(), pairs.tokens.begin() + pairs.sentences[0]),
            tokenizer_->encode("le chat dort"));
  EXPECT_EQ(tokenise_pairs({pairs_}, *tokenizer_, 100, 20).pairs.size(), 20);
  EXPECT_EQ(tokenise_pairs({text_}, *tokenizer_, 100, 1000).pairs.size(), 60);
  const auto pair_tokens = pairs.pairs[0];  // the other pair has another number
  ASSERT_NE(pairs.pairs[1], 2 * pair_tokens);
  const int64_t shorter = std::min(pair_tokens, pairs.pairs[1] - pair_tokens);
  const auto short_pairs = tokenise_pairs({pairs_}, *tokenizer_, shorter, 1000);
  EXPECT_EQ(short_pairs.pairs.size(), 30);
  EXPECT_EQ(short_pairs.sentences.size(), 60);
  EXPECT_EQ(short_pairs.pairs.back(), 30 * shorter);
}

TEST_F(CooccurrenceCorpus, TokensThatDoNotOccurKeepTheirRandomEmbeddingsAndAllTheirLength) {
  ModelConfig config = tiny_config(tokenizer_->size());
  config.tied_embeddings = false;
  Decoder decoder(config);
  decoder.initialise(1);
  const auto input = decoder.embedding->weight.detach().clone(), output = decoder.output.detach().clone();
  initialise_embeddings(decoder, {pairs_}, *tokenizer_, 100, 1);
  const auto tokens = tokenise_pairs({pairs_}, *tokenizer_, 100, 1000).tokens;
  for (const auto& [now, before] :
       {std::pair(decoder.embedding->weight, input), std::pair(decoder.output, output)}) {
    EXPECT_TRUE(now.norm(2, 1).allclose(before.norm(2, 1)));
    for (int64_t token = 0; token < tokenizer_->size(); ++token) {
      const bool occurs = std::find(tokens.begin(), tokens.end(), token) != tokens.end();
      EXPECT_EQ(now[token].equal(before[token]), !occurs) << token;
    }
  }
}

}  // namespace
}  // namespace calque
