// When the ranks' gradients travel: while the backward pass still computes.
#include "calque/train/gradient_sum.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cstring>

#include "calque/model/batch_layout.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"
#include "distributed/ranks.h"
#include "tiny_model.h"
#include "train/random_batch.h"

namespace calque {
namespace {

CrossEntropyLoss loss_of(const Decoder& decoder, const Batch& batch) {
  return decoder.loss(index_tensor(batch.tokens, torch::kCPU),
                      batch_layout(batch, decoder.config(), torch::kCPU),
                      index_tensor(batch.labels, torch::kCPU), 0);
}

TEST(GradientSum, EachBucketIsSentBeforeTheNextIsComplete) {
  for (ModelConfig config : every_kind()) {
    config.vocabulary = 50;
    run_ranks(2, [&](ProcessGroup& group) {
      Decoder decoder(config);
      decoder.initialise(1);
      DeviceGroup device_group(group, torch::kCPU);
      GradientSum sum(trained_parameters(decoder, {}), Compression::none, device_group, 700);
      size_t sent_at_norm = 0, sent_at_last = 0;
      decoder.norm->parameters().front().register_hook(
          [&](const torch::Tensor&) { sent_at_norm = sum.sent_count(); });
      // The embedding's gradient is the last: of the model's first operation, and of the output if it is
      // tied.
      decoder.embedding->parameters().front().register_hook(
          [&](const torch::Tensor&) { sent_at_last = sum.sent_count(); });
      const torch::Tensor loss = loss_of(decoder, random_batch(1, 12, group.rank(), 2)).smoothed;
      sum.start();
      loss.backward();
      EXPECT_GE(sum.bucket_count(), 3U);
      EXPECT_EQ(sent_at_norm, config.tied_embeddings ? 0 : 1);  // the output's gradient is the first
      EXPECT_EQ(sent_at_last, sum.bucket_count() - 1);
      EXPECT_EQ(sum.sent_count(), sum.bucket_count());
      sum.finish();
    });
  }
}

// Rank's own: how often something was sent so far.
thread_local int communications = 0;

std::unique_ptr<at::ObserverContext> count_communication(const at::RecordFunction& function) {
  if (std::strcmp(function.name(), "communication") == 0) ++communications;
  return nullptr;
}

TEST(GradientSum, ATrainerSendsBeforeTheBackwardPassEnds) {
  ModelConfig config = tiny_config(50);
  config.hidden_size = 256;
  config.mlp_size = 768;
  config.layers = 3;  // 2.4 million parameters: more than a bucket
  TrainConfig training;
  training.micro_batch_tokens = 60;  // only the last part of a batch sends
  run_ranks(2, [&](ProcessGroup& group) {
    communications = 0;
    const auto listener = at::addThreadLocalCallback(
        at::RecordFunctionCallback(count_communication).scopes({at::RecordScope::USER_SCOPE}));
    Trainer trainer(make_decoder(config), training, 7, torch::kCPU, {},
                    {std::shared_ptr<ProcessGroup>(std::shared_ptr<void>(), &group), {}});
    std::vector<int> at_gradient;
    trainer.decoder().embedding->parameters().front().register_hook(
        [&](const torch::Tensor&) { at_gradient.push_back(communications); });
    const Batch batch = random_batch(1, 12, group.rank(), 2);
    trainer.step(batch, 1e-3);
    ASSERT_GT(at_gradient.size(), 1U);
    EXPECT_EQ(at_gradient.front(), 0);
    EXPECT_GE(at_gradient.back(), 1);
    at::removeCallback(listener);
  });
}

}  // namespace
}  // namespace calque
