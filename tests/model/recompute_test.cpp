#include "calque/model/recompute.h"

#include <gtest/gtest.h>
#include <torch/nn/functional.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace calque {
namespace {

using torch::Tensor;

struct Result {
  Tensor y, x_gradient, weight_gradient;
  double next_random;  // drawn after the backward pass
};

// dropout(tanh(x · w)), with a seed; `again` computes it twice, with gradient checkpointing.
Result compute(bool again, bool x_wants_gradients, int& calls) {
  torch::manual_seed(7);
  const Tensor w = torch::randn({4, 4}, torch::requires_grad());
  const Tensor x = torch::randn({3, 4}).requires_grad_(x_wants_gradients);
  calls = 0;
  const ModelPart part = [&](const Tensor& given) {
    ++calls;
    return torch::dropout(torch::tanh(given.mm(w)), 0.5, true);
  };
  const Tensor y = again ? recomputed(part, x) : part(x);
  const Tensor between = torch::rand({2});  // the second pass must not depend on what others drew since
  y.pow(2).sum().backward();
  return {y.detach(), x.grad(), w.grad(), torch::rand({}).item<double>() + 0 * between.sum().item<double>()};
}

}  // namespace

TEST(Recompute, GradientsAreThoseWithoutItDropoutIncluded) {
  for (const bool x_wants_gradients : {true, false}) {
    int once = 0, twice = 0;
    const Result expected = compute(false, x_wants_gradients, once);
    const Result found = compute(true, x_wants_gradients, twice);
    EXPECT_EQ(once, 1);
    EXPECT_EQ(twice, 2);
    EXPECT_TRUE(torch::equal(found.y, expected.y));
    EXPECT_TRUE(torch::equal(found.weight_gradient, expected.weight_gradient));
    EXPECT_EQ(found.x_gradient.defined(), x_wants_gradients);
    if (x_wants_gradients) {
      EXPECT_TRUE(torch::equal(found.x_gradient, expected.x_gradient));
    }
    // The backward pass leaves the generator where it found it.
    EXPECT_EQ(found.next_random, expected.next_random);
  }
}

}  // namespace calque
