#include "calque/model/linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kernels/compare.h"

namespace calque {
namespace {

std::shared_ptr<Linear> random_linear(bool bias) {
  at::manual_seed(3);
  const auto linear = std::make_shared<Linear>(12, 10, bias);
  const torch::NoGradGuard no_gradients;
  linear->weight.normal_();
  if (bias) linear->bias.normal_();
  return linear;
}

void randomise_adapter(Linear& linear) {
  const torch::NoGradGuard no_gradients;
  linear.adapter->up.normal_();
}

}  // namespace

TEST(Linear, EveryFormMultipliesByItsWeightAndAPartGivesThatPart) {
  using Change = std::function<void(Linear&)>;
  const std::vector<std::tuple<const char*, double, Change>> forms = {
      {"plain", 1e-6, [](Linear&) {}},
      {"bfloat16 products", 0.03, [](Linear& l) { l.products = torch::kBFloat16; }},
      {"frozen float32", 1e-6, [](Linear& l) { l.freeze(WeightPrecision::float32); }},
      {"frozen bfloat16", 0.02, [](Linear& l) { l.freeze(WeightPrecision::bfloat16); }},
      {"frozen int8", 0.02, [](Linear& l) { l.freeze(WeightPrecision::int8); }},
      {"packed float32", 1e-6, [](Linear& l) { l.pack(WeightPrecision::float32); }},
      {"packed int8", 0.02, [](Linear& l) { l.pack(WeightPrecision::int8); }}};
  const auto x = torch::randn({5, 12});
  for (const bool bias : {false, true}) {
    for (const auto& [name, tolerance, change] : forms) {
      const auto linear = random_linear(bias);
      const auto expected = torch::linear(x, linear->weight, linear->bias).detach();
      change(*linear);
      const torch::NoGradGuard no_gradients;
      const auto whole = linear->forward(x);
      expect_close(whole, expected, tolerance, name);
      for (const auto& [begin, end] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 10}, {0, 4}, {4, 10}, {3, 7}})
        expect_close(linear->forward_part(x, begin, end), whole.slice(1, begin, end), 1e-6, name);
    }
  }
}

TEST(Linear, AnAdapterAddsItsProductUntilItIsMerged) {
  const auto x = torch::randn({5, 12});
  for (const bool frozen : {false, true}) {
    const auto linear = random_linear(true);
    if (frozen) linear->freeze(WeightPrecision::bfloat16);
    const auto before = linear->forward(x).detach();
    linear->add_adapter(3, 0.5, 0, 7);
    EXPECT_TRUE(torch::equal(linear->forward(x), before));  // `up` begins at zero
    randomise_adapter(*linear);
    const LowRankAdapter adapter = *linear->adapter;
    const torch::NoGradGuard no_gradients;
    const auto added = before + 0.5 * x.mm(adapter.down.t()).mm(adapter.up.t());
    expect_close(linear->forward(x), added, 1e-5, "with adapter");
    expect_close(linear->forward_part(x, 2, 7), added.slice(1, 2, 7), 1e-5, "part with adapter");
    expect_close(torch::linear(x, linear->merged_weight(), linear->bias), added, 1e-5, "merged");
    linear->pack(WeightPrecision::float32);
    EXPECT_FALSE(linear->adapter);
    EXPECT_FALSE(linear->weight.defined());
    EXPECT_EQ(linear->parameters().size(), 1U);  // the bias
    expect_close(linear->forward(x), added, 1e-5, "packed");
    EXPECT_ANY_THROW(linear->merged_weight());
  }
}

TEST(Linear, AnAdapterIsDrawnFromItsSeedAndScaledByTheInputs) {
  const auto linear = std::make_shared<Linear>(400, 10, false),
             same = std::make_shared<Linear>(400, 10, false),
             other = std::make_shared<Linear>(400, 10, false);
  linear->add_adapter(50, 2, 0.25, 7);
  same->add_adapter(50, 2, 0.25, 7);
  other->add_adapter(50, 2, 0.25, 8);
  EXPECT_NEAR(linear->adapter->down.std().item<double>(), 1 / std::sqrt(400.0), 1e-3);
  EXPECT_NEAR(linear->adapter->down.mean().item<double>(), 0, 1e-3);
  EXPECT_EQ(linear->adapter->up.abs().max().item<double>(), 0);
  EXPECT_EQ(linear->adapter->up.sizes(), (torch::IntArrayRef{10, 50}));
  EXPECT_TRUE(torch::equal(linear->adapter->down, same->adapter->down));
  EXPECT_FALSE(torch::equal(linear->adapter->down, other->adapter->down));
  EXPECT_EQ(linear->adapter->scale, 2);
  EXPECT_EQ(linear->adapter->dropout, 0.25);
  EXPECT_EQ(LowRankAdapter{}.scale + LowRankAdapter{}.dropout, 0);
  // Dropout acts on the adapter's input alone, while training.
  randomise_adapter(*linear);
  const torch::NoGradGuard no_gradients;
  linear->weight.zero_();
  const auto x = torch::ones({2, 400});
  linear->train();
  EXPECT_FALSE(torch::equal(linear->forward(x), linear->forward(x)));
  linear->eval();
  EXPECT_TRUE(torch::equal(linear->forward(x), linear->forward(x)));
}

TEST(Linear, KnowsWhereItsWeightsAre) {
  const auto linear = random_linear(true);
  EXPECT_EQ(linear->inputs(), 12);
  EXPECT_EQ(linear->outputs(), 10);
  EXPECT_TRUE(linear->is_trained());
  EXPECT_EQ(linear->stored_weights(), 0);
  EXPECT_EQ(linear->products, torch::kFloat32);
  linear->freeze(WeightPrecision::float32);
  EXPECT_FALSE(linear->is_trained());
  EXPECT_EQ(linear->stored_weights(), 0);
  linear->freeze(WeightPrecision::int8);
  EXPECT_FALSE(linear->is_trained());
  EXPECT_FALSE(linear->weight.defined());
  EXPECT_EQ(linear->stored_weights(), 120);
  EXPECT_EQ(linear->named_parameters().keys(), std::vector<std::string>{"bias"});
  EXPECT_EQ(random_linear(false)->parameters().size(), 1U);
  EXPECT_EQ(Linear(2, 3, true).bias.abs().max().item<float>(), 0);
}

// The low-rank product is added to a part of the base's output, which is a view of it.
TEST(Linear, APartWithAnAdapterOnAFrozenBaseHasTheGradientsOfTheWhole) {
  at::manual_seed(21);
  for (const bool input_is_trained : {false, true}) {
    Linear linear(6, 9, /*bias=*/false);
    torch::NoGradGuard no_gradients;
    linear.weight.normal_();
    linear.freeze(WeightPrecision::bfloat16);
    linear.add_adapter(2, 0.5, 0, 3);
    linear.adapter->up.normal_();
    const auto start = torch::randn({11, 6}), factors = torch::randn({11, 5});
    std::vector<std::vector<torch::Tensor>> found;
    for (const bool part : {true, false}) {
      const torch::AutoGradMode gradients(true);
      const auto x = start.clone().set_requires_grad(input_is_trained);
      linear.adapter->up.mutable_grad() = linear.adapter->down.mutable_grad() = torch::Tensor();
      const auto y = part ? linear.forward_part(x, 2, 7) : linear.forward(x).slice(1, 2, 7);
      (y * factors).sum().backward();
      found.push_back({y.detach(), linear.adapter->up.grad().clone(), linear.adapter->down.grad().clone()});
      if (input_is_trained) found.back().push_back(x.grad());
    }
    for (size_t i = 0; i < found[0].size(); ++i)
      expect_close(found[0][i], found[1][i], 1e-6, std::to_string(i));
  }
}

}  // namespace calque
