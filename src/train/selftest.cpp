#include "calque/train/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "calque/base/progress.h"
#include "calque/base/units.h"
#include "calque/decode/search.h"
#include "calque/kernels/device.h"
#include "calque/kernels/portable.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"
#include "selftest_batch.h"

namespace calque {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int64_t steps = 20, sentences = 10;

ModelConfig selftest_model(int64_t hidden_size, int64_t layers, int64_t vocabulary) {
  ModelConfig config;
  config.layers = layers;
  config.hidden_size = hidden_size;
  config.heads = 4;
  config.kv_heads = 2;
  config.mlp_size = 2 * hidden_size;
  config.context_length = 128;
  config.vocabulary = vocabulary;
  return config;
}

std::shared_ptr<Decoder> selftest_decoder(const ModelConfig& config, const torch::Device& device,
                                          torch::Dtype products) {
  auto decoder = std::make_shared<Decoder>(config);
  decoder->initialise(1);
  decoder->to(device);
  decoder->use_products(products);
  return decoder;
}

std::vector<double> training_losses(const SelftestSide& side, const TrainConfig& config) {
  const PortableKernels portable(side.portable);
  const ModelConfig model = selftest_model(64, 2, 100);
  Trainer trainer(selftest_decoder(model, side.device, product_type(config.precision)), config, 1,
                  side.device);
  std::vector<double> losses;
  for (uint32_t step = 0; step < steps; ++step)
    losses.push_back(trainer.step(selftest_batch(step, 500, 20, model.vocabulary), 3e-3).loss);
  return losses;
}

// The weights are multiplied so that the model's choices are as clear as a trained model's.
std::shared_ptr<Decoder> clear_decoder(const ModelConfig& config, const SelftestSide& side) {
  const torch::NoGradGuard no_gradients;
  auto decoder = std::make_shared<Decoder>(config);
  decoder->initialise(5);
  for (auto& parameter : decoder->parameters()) {
    if (parameter.dim() == 2) parameter.mul_(12);
  }
  decoder->eval();
  if (side.is_fast()) {
    decoder->pack(WeightPrecision::float32);
  } else {
    decoder->to(side.device);
    decoder->store_weights(torch::kFloat32);
  }
  return decoder;
}

std::vector<Hypothesis> translations(const Decoder& decoder, int64_t beam, int64_t count, int64_t longest) {
  SearchOptions options;
  options.decode.beam = beam;
  options.decode.max_length_ratio = 1;
  options.decode.max_length_extra = 5;
  options.format = selftest_format;
  options.forbidden = {0, 1, 3};
  std::vector<Hypothesis> best(static_cast<size_t>(count));
  std::mt19937 random(3);
  int64_t next = 0;
  Search(decoder, options)
      .run(
          [&](bool) -> std::optional<SearchRequest> {
            if (next == count) return std::nullopt;
            const int64_t tokens = 1 + static_cast<int64_t>(random()) % longest;
            return SearchRequest{next++, selftest_source(random, tokens, decoder.config().vocabulary)};
          },
          [&](int64_t id, const std::vector<Hypothesis>& found) {
            best[static_cast<size_t>(id)] = found.front();
          });
  return best;
}

SelftestCheck check_training(const Selftest& test, const std::string& name, const TrainConfig& config,
                             double allowed) {
  return run_check(fmt::format("{} training steps, {}", steps, name), allowed, [&](SelftestCheck& check) {
    const auto expected = training_losses(test.other, config), found = training_losses(test.tested, config);
    if (!(expected.back() < 0.95 * expected.front())) throw std::runtime_error("the loss does not fall");
    for (size_t i = 0; i < found.size(); ++i) {
      const double difference = std::abs(found[i] - expected[i]) / expected[i];
      if (!(difference <= check.difference)) check.difference = difference;
    }
    check.note = fmt::format("loss {:.4f} → {:.4f}", found.front(), found.back());
  });
}

// Rounding may decide between two translations of the same score.
SelftestCheck check_translations(const Selftest& test) {
  return run_check(fmt::format("{} translations, beam 4", sentences), 1e-3, [&](SelftestCheck& check) {
    const auto translate_on = [](const SelftestSide& side) {
      const PortableKernels portable(side.portable);
      return translations(*clear_decoder(selftest_model(32, 2, 100), side), 4, sentences, 20);
    };
    const auto expected = translate_on(test.other), found = translate_on(test.tested);
    int64_t equal = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      check.difference = std::max(check.difference, std::abs(found[i].score - expected[i].score));
      equal += found[i].tokens == expected[i].tokens ? 1 : 0;
    }
    check.note = fmt::format("{} of {} identical", equal, sentences);
  });
}

double seconds_of(const SelftestSide& side, const std::function<void()>& work) {
  wait_for(side.device);
  const auto start = Clock::now();
  work();
  wait_for(side.device);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double training_speed(const SelftestSide& side, double timed_seconds) {
  const PortableKernels portable(side.portable);
  const ModelConfig model = selftest_model(256, 4, 8000);
  Trainer trainer(selftest_decoder(model, side.device, torch::kFloat32), TrainConfig(), 1, side.device);
  const Batch batch = selftest_batch(1, 4000, 50, model.vocabulary);
  trainer.step(batch, 0);  // mutate: speed; the first step allocates
  double rows = 0, seconds = 0;
  while (seconds < timed_seconds) {
    seconds += seconds_of(side, [&] { trainer.step(batch, 1e-4); });
    rows += static_cast<double>(batch.rows());
  }
  return rows / seconds;
}

double translation_speed(const SelftestSide& side, double timed_seconds) {
  const PortableKernels portable(side.portable);
  const auto decoder = clear_decoder(selftest_model(256, 4, 8000), side);
  translations(*decoder, 1, 64, 40);  // mutate: speed; the first one allocates
  double tokens = 0, seconds = 0;
  while (seconds < timed_seconds) {
    std::vector<Hypothesis> found;
    seconds += seconds_of(side, [&] { found = translations(*decoder, 1, 64, 40); });
    for (const Hypothesis& one : found) tokens += static_cast<double>(one.tokens.size()) + 1;
  }
  return tokens / seconds;
}

}  // namespace

std::string SelftestSide::name() const {
  return fmt::format("{} ({} kernels)", device.str(), is_fast() ? "fast" : "portable");
}

SelftestCheck run_check(const std::string& name, double allowed,
                        const std::function<void(SelftestCheck& check)>& work) {
  SelftestCheck check{name, 0, allowed};
  try {
    work(check);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    check.difference = INFINITY;
    check.note = what.substr(0, what.find('\n'));  // LibTorch adds where in itself
  }
  return check;
}

Selftest run_selftest(const SelftestSide& tested, double timed_seconds) {
  Selftest test;
  test.tested = tested;
  test.other.portable = tested.is_fast();
  TrainConfig adamw, muon, bfloat16, float16;
  muon.optimizer = OptimizerKind::muon;
  bfloat16.precision = Precision::bfloat16;
  float16.precision = Precision::float16;
  Progress progress("selftest", timed_seconds > 0 ? 8 : 6, "parts");
  const auto done = [&](SelftestCheck check) {
    test.checks.push_back(std::move(check));
    progress.advance(1);  // mutate: shown only
  };
  test.checks = check_kernels(tested);
  progress.advance(1);  // mutate: shown only
  done(check_training(test, "float32", adamw, 1e-3));
  done(check_training(test, "Muon", muon, 1e-2));
  done(check_training(test, "bfloat16", bfloat16, 3e-2));
  done(check_training(test, "float16", float16, 3e-2));
  done(check_translations(test));
  if (timed_seconds <= 0) return test;
  const auto time = [&](const char* name, double (*speed)(const SelftestSide&, double)) {
    test.speeds.push_back({name, speed(test.tested, timed_seconds), speed(test.other, timed_seconds)});
    progress.advance(1);  // mutate: shown only
  };
  time("training, 4,000 tokens per step", training_speed);
  time("translating, 64 sentences at a time", translation_speed);
  return test;
}

bool Selftest::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const SelftestCheck& one) { return one.passed(); });
}

json SelftestCheck::to_json() const {
  return {{"name", name},
          {"difference", std::isfinite(difference) ? json(difference) : json()},
          {"allowed", allowed},
          {"passed", passed()},
          {"note", note}};
}

json SelftestSpeed::to_json() const {
  return {{"name", name}, {"tokens_per_second", tested}, {"other_tokens_per_second", other}};
}

json Selftest::to_json() const {
  json all = {{"device", tested.name()},
              {"compared_with", other.name()},
              {"passed", passed()},
              {"checks", json::array()},
              {"speeds", json::array()}};
  for (const SelftestCheck& one : checks) all["checks"].push_back(one.to_json());
  for (const SelftestSpeed& one : speeds) all["speeds"].push_back(one.to_json());
  return all;
}

std::string Selftest::to_text() const {
  std::string text = fmt::format("{}; training and translations compared with {}\n\n{:<53}{:>12}{:>10}\n",
                                 tested.name(), other.name(), "check", "difference", "allowed");
  for (const SelftestCheck& one : checks)
    text += fmt::format("{:<53}{:>12.1e}{:>10.0e}  {}{}\n", one.name, one.difference, one.allowed,
                        one.passed() ? "pass" : "FAIL", one.note.empty() ? "" : "  " + one.note);
  const auto failed =
      std::count_if(checks.begin(), checks.end(), [](const SelftestCheck& one) { return !one.passed(); });
  text += failed == 0 ? fmt::format("\nall {} checks passed\n", checks.size())
                      : fmt::format("\n{} of {} checks failed\n", failed, checks.size());
  for (const SelftestSpeed& one : speeds)
    text +=
        fmt::format("{}: {} tokens/s; {}: {} tokens/s\n", one.name, format_count(std::llround(one.tested)),
                    other.name(), format_count(std::llround(one.other)));
  return text;
}

}  // namespace calque
