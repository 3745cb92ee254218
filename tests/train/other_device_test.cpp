// Whole runs on a device that is not the CPU.
#include <gmock/gmock.h>

#include "calque/runs/model_source.h"
#include "fake_device.h"
#include "train/training_fixture.h"

namespace calque {
namespace {

RunConfig run_on(const TemporaryFolder& folder, const std::string& device) {
  RunConfig config = small_run(folder);
  config.run = "on-" + device;
  config.train.device = device;
  config.train.steps = 8;
  config.train.schedule = ScheduleKind::constant;
  config.train.decay_fraction = 0;
  config.train.validate_every = config.train.checkpoint_every = 4;
  config.train.validate_sentences = 3;
  config.train.ema_decay = 0.9;
  config.train.precision = Precision::float32;
  return config;
}

using OtherDeviceTest = TrainingTest;

}  // namespace

TEST_F(OtherDeviceTest, ARunHasTheCpusLossAndResumesInTheSameBitsAndTranslates) {
  const FakeDevice fake;
  const RunConfig here = run_on(folder_, "cpu"), there = run_on(folder_, "hpu");
  const TrainingResult expected = run(here), found = run(there);
  EXPECT_NEAR(found.state.valid_loss, expected.state.valid_loss, 1e-4);
  RunConfig stopped = there;
  stopped.run = "stopped";
  stopped.train.steps = 3;
  run(stopped);
  stopped.train.steps = 8;
  run(stopped, true);
  EXPECT_EQ(weights(stopped), weights(there));

  const ModelSource source = find_model(folder_ / "runs", there.run);
  const std::string line = "Le chat dort.";
  const auto on_cpu = open_translator(source)->translate(line);
  const auto on_device = open_translator(source, WeightPrecision::float32, fake.device)->translate(line);
  EXPECT_EQ(on_device.text(), on_cpu.text());
  EXPECT_NEAR(on_device.best.front().score, on_cpu.best.front().score, 1e-4);
  SharedModels shared;
  const auto rounded = shared.open(source, WeightPrecision::bfloat16, fake.device);
  EXPECT_EQ(rounded->decoder().weight_precision(), WeightPrecision::bfloat16);
  EXPECT_NEAR(rounded->translate(line).best.front().score, on_cpu.best.front().score, 0.1);
  EXPECT_THROW(open_translator(source, WeightPrecision::int8, fake.device), UserError);
}

TEST_F(OtherDeviceTest, AdaptersTrainOnAFrozenBaseModel) {
  const FakeDevice fake;
  RunConfig base = run_on(folder_, "cpu");
  run(base);
  std::vector<double> losses;
  for (const char* device : {"cpu", "hpu"}) {
    RunConfig tuned = run_on(folder_, device);
    tuned.run = std::string("tuned-on-") + device;
    tuned.finetune.init_from = folder_ / "runs/on-cpu/checkpoints/last";
    tuned.finetune.lora.rank = 4;
    tuned.finetune.base_precision = WeightPrecision::bfloat16;
    tuned.tokenizer.path.clear();
    losses.push_back(run(tuned).state.valid_loss);
  }
  EXPECT_NEAR(losses[1], losses[0], 1e-4);
}

}  // namespace calque
