// On a device each operation has to be started, which costs more than a small one takes: their number must
// not grow with the number of pairs or sentences.
#include <gtest/gtest.h>

#include "calque/decode/search.h"
#include "calque/kernels/portable.h"
#include "calque/train/trainer.h"
#include "operation_count.h"
#include "tiny_model.h"
#include "train/random_batch.h"

namespace calque {
namespace {

int64_t operations_of_a_step(const Batch& batch) {
  Trainer trainer(make_decoder(tiny_config(50)), TrainConfig(), 1, torch::kCPU);
  return count_operations([&] { trainer.step(batch, 1e-3); });
}

// All sentences are alike, so that every search takes the same passes.
int64_t operations_of_a_search(size_t sentences, bool sample) {
  const auto decoder = make_decoder(tiny_config(50));
  SearchOptions options;
  options.decode.beam = 3;
  options.decode.sample = sample;
  options.decode.no_repeat_ngram = 2;
  options.format = {{1}, {3}, 2};
  options.forbidden = {0, 1, 3};
  size_t next = 0, found = 0;
  const int64_t count = count_operations([&] {
    Search(*decoder, options)
        .run(
            [&](bool) -> std::optional<SearchRequest> {
              if (next == sentences) return std::nullopt;
              SearchRequest request{static_cast<int64_t>(next++), {7, 8, 9, 10}};
              request.random_stream = 1;
              return request;
            },
            [&](int64_t, const std::vector<Hypothesis>&) { ++found; });
  });
  EXPECT_EQ(found, sentences);
  return count;
}

}  // namespace

TEST(Operations, ATrainingStepHasAsManyForAnyNumberOfPairs) {
  const PortableKernels portable;
  const int64_t few = operations_of_a_step(random_batch(1, 3));
  EXPECT_LT(operations_of_a_step(random_batch(1, 300)), few + few / 20);  // it differs with their sizes
  Batch skewed = random_batch(1, 300);
  skewed.add({{1}, {3}, 2}, std::vector<int32_t>(30, 7), std::vector<int32_t>(30, 8));
  EXPECT_LT(operations_of_a_step(skewed), few + few / 2);  // two groups: a long pair, and the others
}

TEST(Operations, ASearchHasAsManyForAnyNumberOfSentences) {
  const PortableKernels portable;
  for (const bool sample : {false, true}) {
    const int64_t one = operations_of_a_search(1, sample);
    EXPECT_LT(operations_of_a_search(30, sample), one + one / 20) << sample;  // the cache grows
  }
}

}  // namespace calque
