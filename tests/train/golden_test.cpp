// Ten training steps on a tiny Llama against PyTorch's own numbers (tools/goldens/make_training.py).
#include <gtest/gtest.h>

#include <cmath>

#include "calque/base/file.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/model/lora.h"
#include "calque/train/run_setup.h"
#include "calque/train/schedule.h"
#include "calque/train/trainer.h"
#include "kernels/compare.h"

namespace calque {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path golden = fs::path(CALQUE_SOURCE_FOLDER) / "tests/golden/training";

std::vector<Batch> golden_batches() {
  std::vector<Batch> batches;
  for (const json& pairs : json::parse(read_file(golden / "batches.json"))) {
    Batch& batch = batches.emplace_back();
    for (const json& pair : pairs)
      batch.add({{1}, {3}, 2}, pair["source"].get<std::vector<int32_t>>(),
                pair["target"].get<std::vector<int32_t>>());
  }
  return batches;
}

// A case as the golden file describes it: its settings, and what PyTorch computed.
struct GoldenCase {
  explicit GoldenCase(const std::string& name) : file(golden / (name + ".safetensors")) {
    settings = json::parse(file.metadata().at("hyper_parameters"));
    config.weight_decay = settings.value("weight_decay", 0.0);
    config.max_grad_norm = settings.value("max_grad_norm", 0.0);
    config.label_smoothing = settings.value("label_smoothing", 0.0);
    config.ema_decay = settings.value("ema_decay", 0.0);
    config.optimizer =
        settings.value("optimizer", "adamw") == "muon" ? OptimizerKind::muon : OptimizerKind::adamw;
    config.muon_method = MuonMethod::newton_schulz;  // PyTorch's
    finetune.init_from = golden / "model";
    finetune.base_lr_scale = settings.value("base_lr_scale", 1.0);
    finetune.layer_lr_decay = settings.value("layer_lr_decay", 1.0);
  }

  std::shared_ptr<Decoder> model() const {
    auto decoder = Checkpoint(golden / "model").make_decoder();
    if (!settings.contains("lora_rank")) return decoder;
    add_adapters(*decoder,
                 {settings["lora_rank"], settings["lora_scale"], 0, {"qkv", "output", "up", "down"}}, 1,
                 WeightPrecision::float32);
    const torch::NoGradGuard no_gradients;
    for (const auto& parameter : decoder->named_parameters()) {
      if (parameter.value().requires_grad())
        parameter.value().copy_(file.tensor("initial." + parameter.key()));
    }
    return decoder;
  }

  Safetensors file;
  json settings;
  TrainConfig config;
  FinetuneConfig finetune;
};

// The trained tensors under the names of the golden file: Hugging Face's, or our own for adapters.
NamedTensors trained_views(const Decoder& decoder) {
  if (!has_adapters(decoder)) return weight_views(decoder);
  NamedTensors views;
  for (const auto& parameter : decoder.named_parameters()) {
    if (parameter.value().requires_grad()) views.emplace_back(parameter.key(), parameter.value().detach());
  }
  return views;
}

// The gradients in the places of the weights, so that trained_views() names them too.
std::shared_ptr<Decoder> gradients_as_weights(const Decoder& decoder) {
  const torch::NoGradGuard no_gradients;
  auto copy = std::make_shared<Decoder>(decoder.config());
  for (const auto& parameter : copy->named_parameters())
    parameter.value().copy_(decoder.named_parameters()[parameter.key()].grad());
  return copy;
}

void expect_golden(const NamedTensors& found, const Safetensors& file, const std::string& prefix,
                   double tolerance) {
  ASSERT_FALSE(found.empty());
  for (const auto& [name, value] : found) {
    EXPECT_LT(worst_difference(value, file.tensor(prefix + name)), tolerance) << prefix << name;
  }
}

}  // namespace

class TrainingGolden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cases, TrainingGolden,
                         testing::Values("adamw", "muon", "smoothing", "ema", "layers", "lora"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(TrainingGolden, TenStepsMatchPyTorch) {
  const GoldenCase c(GetParam());
  const auto decoder = c.model();
  Trainer trainer(decoder, c.config, 1, torch::kCPU, c.finetune);
  const torch::Tensor losses = c.file.tensor("losses"), norms = c.file.tensor("gradient_norms");
  const auto batches = golden_batches();
  ASSERT_EQ(batches.size(), 10U);
  for (size_t i = 0; i < batches.size(); ++i) {
    const StepResult step = trainer.step(batches[i], c.settings["learning_rate"]);
    EXPECT_NEAR(step.loss, losses[static_cast<int64_t>(i)].item<double>(), 1e-5) << "step " << i;
    EXPECT_NEAR(step.gradient_norm, norms[static_cast<int64_t>(i)].item<double>(), 1e-5) << "step " << i;
  }
  expect_golden(trained_views(*decoder), c.file, "final.", 1e-5);
  if (c.config.ema_decay > 0) {
    trainer.with_evaluation_model(
        [&](const Decoder& averaged) { expect_golden(trained_views(averaged), c.file, "ema.", 1e-5); });
    expect_golden(trained_views(*decoder), c.file, "final.", 1e-5);  // and they are swapped back
  }
}

TEST_P(TrainingGolden, GradientsOfTheFirstStepMatchPyTorch) {
  GoldenCase c(GetParam());
  if (std::string(GetParam()) != "adamw" && std::string(GetParam()) != "smoothing")
    GTEST_SKIP() << "not stored";
  c.config.max_grad_norm = 0;  // clipping would scale them in place
  const auto decoder = c.model();
  Trainer trainer(decoder, c.config, 1, torch::kCPU, c.finetune);
  trainer.step(golden_batches().front(), 0);
  expect_golden(trained_views(*gradients_as_weights(*decoder)), c.file, "gradient.", 2e-6);
}

TEST(TrainingGoldens, AccumulatedMicroBatchesMatchPyTorchToo) {
  GoldenCase c("adamw");
  c.config.micro_batch_tokens = 20;
  const auto decoder = c.model();
  Trainer trainer(decoder, c.config, 1, torch::kCPU, c.finetune);
  for (const Batch& batch : golden_batches()) {
    ASSERT_GT(split_batch(batch, 20).size(), 1U);
    trainer.step(batch, c.settings["learning_rate"]);
  }
  expect_golden(trained_views(*decoder), c.file, "final.", 1e-5);
}

TEST(TrainingGoldens, SchedulesMatchTransformers) {
  const json all = json::parse(read_file(golden / "schedules.json"));
  TrainConfig config;
  config.warmup_steps = 40;
  config.decay_fraction = 0.2;
  size_t points = 0;
  for (const auto& [kind, name] : {std::pair{ScheduleKind::cosine, "cosine"},
                                   {ScheduleKind::linear, "linear"},
                                   {ScheduleKind::inverse_sqrt, "inverse_sqrt"},
                                   {ScheduleKind::constant, "constant"}}) {
    config.schedule = kind;
    for (const json& point : all["schedules"][name]) {
      const int64_t step = point["step"];
      EXPECT_NEAR(learning_rate_share(config, step, static_cast<double>(step) / 300),
                  point["share"].get<double>(), 1e-12)
          << name << " at " << step;
      ++points;
    }
  }
  EXPECT_GT(points, 100U);
}

}  // namespace calque
