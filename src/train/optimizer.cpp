#include "calque/train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace calque {
namespace {

constexpr double muon_momentum = 0.95;

}  // namespace

Optimizer::Optimizer(const Decoder& decoder, const TrainConfig& config, const RateShare& rate_share)
    : config_(config) {
  std::vector<std::pair<const void*, std::vector<int64_t>>>
      parts;  // of fused matrices, by the address of their tensor
  for (const auto& block : decoder.blocks) {
    const AttentionShape& shape = block->attention->shape;
    const int64_t kv = shape.key_value_width() / 2;
    parts.push_back({block->attention->qkv->weight.unsafeGetTensorImpl(), {shape.query_width(), kv, kv}});
    parts.push_back(
        {block->attention->output->weight.unsafeGetTensorImpl(), {block->attention->output->weight.size(0)}});
    const int64_t inner = block->feed_forward->down->weight.size(1),
                  up = block->feed_forward->up->weight.size(0);
    parts.push_back(
        {block->feed_forward->up->weight.unsafeGetTensorImpl(), std::vector<int64_t>(up / inner, inner)});
    parts.push_back({block->feed_forward->down->weight.unsafeGetTensorImpl(),
                     {block->feed_forward->down->weight.size(0)}});
  }
  for (const auto& named : decoder.named_parameters()) {
    if (!named.value().requires_grad()) continue;
    const double share = rate_share ? rate_share(named.key()) : 1;
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& one) {
      return one.first == named.value().unsafeGetTensorImpl();
    });
    if (config.optimizer == OptimizerKind::muon && found != parts.end()) {
      matrices_.push_back({named.value(), torch::zeros_like(named.value()), share, found->second});
      state_.emplace_back(named.key() + ".momentum", matrices_.back().momentum);
    } else {
      add_to_adam(named.key(), named.value(), share);
    }
  }
}

void Optimizer::add_to_adam(const std::string& name, const torch::Tensor& parameter, double rate_share) {
  const double decay =
      parameter.dim() >= 2 ? config_.weight_decay : 0;  // norms and biases are not pulled to zero
  auto found = std::find_if(groups_.begin(), groups_.end(), [&](const AdamGroup& group) {
    return group.weight_decay == decay && group.rate_share == rate_share;
  });
  if (found == groups_.end())
    found = groups_.insert(groups_.end(), AdamGroup{decay, rate_share, {}, {}, {}, {}});
  AdamGroup& group = *found;
  group.parameters.push_back(parameter);
  group.means.push_back(torch::zeros_like(parameter));
  group.squares.push_back(torch::zeros_like(parameter));
  group.steps.push_back(torch::zeros({}, torch::dtype(torch::kFloat32).device(parameter.device())));
  state_.emplace_back(name + ".mean", group.means.back());
  state_.emplace_back(name + ".square", group.squares.back());
  state_.emplace_back(name + ".step", group.steps.back());
}

void Optimizer::step(double learning_rate) {
  RECORD_USER_SCOPE("optimizer");
  const torch::NoGradGuard no_gradients;
  for (AdamGroup& group : groups_) {
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : group.parameters) gradients.push_back(parameter.grad());
    at::_foreach_add_(group.steps, 1);  // the fused kernel only reads them
    at::_fused_adamw_(group.parameters, gradients, group.means, group.squares, {}, group.steps,
                      learning_rate * group.rate_share, config_.beta1, config_.beta2, group.weight_decay,
                      config_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  if (!matrices_.empty()) step_muon(learning_rate);
}

// The size of an update is matched to AdamW's (Liu et al., 2025), so that one learning rate and one decay
// serve both. Matrices of one shape are made orthogonal together: a few large products instead of many small.
void Optimizer::step_muon(double learning_rate) {
  struct Part {
    torch::Tensor parameter, update;  // [rows, columns], views
    double rate;
  };
  std::map<std::pair<int64_t, int64_t>, std::vector<Part>> by_shape;  // (shorter side, longer side)
  for (MuonMatrix& matrix : matrices_) {
    const torch::Tensor gradient = matrix.parameter.grad();
    matrix.momentum.mul_(muon_momentum).add_(gradient);
    const torch::Tensor ahead = gradient.add(matrix.momentum, muon_momentum);  // Nesterov's
    const double rate = learning_rate * matrix.rate_share;
    matrix.parameter.mul_(1 - rate * config_.weight_decay);
    int64_t row = 0;
    for (const int64_t rows : matrix.part_rows) {
      const int64_t columns = ahead.size(1);
      by_shape[{std::min(rows, columns), std::max(rows, columns)}].push_back(
          {matrix.parameter.slice(0, row, row + rows), ahead.slice(0, row, row + rows), rate});
      row += rows;
    }
  }
  for (const auto& [sides, parts] : by_shape) {
    const auto lying = [&](const torch::Tensor& x) { return x.size(0) > x.size(1) ? x.t() : x; };
    std::vector<torch::Tensor> updates;
    for (const Part& part : parts) updates.push_back(lying(part.update));
    const torch::Tensor orthogonal = orthogonalise(torch::stack(updates));  // [matrices, shorter, longer]
    const double size = 0.2 * std::sqrt(static_cast<double>(sides.second));
    for (size_t i = 0; i < parts.size(); ++i)
      lying(parts[i].parameter).sub_(orthogonal[static_cast<int64_t>(i)], parts[i].rate * size);
  }
}

NamedTensors Optimizer::state() const { return state_; }

torch::Tensor orthogonalise(const torch::Tensor& matrices) {
  torch::Tensor x = matrices / (matrices.norm(2, {1, 2}, true) + 1e-7);
  for (int i = 0; i < 5; ++i) {  // an odd polynomial that drives every singular value towards 1
    const torch::Tensor square = torch::bmm(x, x.transpose(1, 2));
    const torch::Tensor factor = torch::baddbmm(square, square, square, -4.7750, 2.0315);
    x = torch::baddbmm(x, factor, x, 3.4445, 1);
  }
  return x;
}

}  // namespace calque
