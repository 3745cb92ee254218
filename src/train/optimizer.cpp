#include "calque/train/optimizer.h"

#include <ATen/ATen.h>

#include <cmath>

namespace calque {
namespace {

constexpr double muon_momentum = 0.95;

}  // namespace

Optimizer::Optimizer(const Decoder& decoder, const TrainConfig& config)
    : config_(config), decayed_{config.weight_decay, {}, {}, {}, {}}, undecayed_{0, {}, {}, {}, {}} {
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
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& one) {
      return one.first == named.value().unsafeGetTensorImpl();
    });
    if (config.optimizer == OptimizerKind::muon && found != parts.end()) {
      matrices_.push_back({named.value(), torch::zeros_like(named.value()), found->second});
      state_.emplace_back(named.key() + ".momentum", matrices_.back().momentum);
    } else {
      add_to_adam(named.key(), named.value());
    }
  }
}

void Optimizer::add_to_adam(const std::string& name, const torch::Tensor& parameter) {
  AdamGroup& group = parameter.dim() >= 2 ? decayed_ : undecayed_;  // norms and biases are not pulled to zero
  group.parameters.push_back(parameter);
  group.means.push_back(torch::zeros_like(parameter));
  group.squares.push_back(torch::zeros_like(parameter));
  group.steps.push_back(torch::zeros({}, torch::dtype(torch::kFloat32).device(parameter.device())));
  state_.emplace_back(name + ".mean", group.means.back());
  state_.emplace_back(name + ".square", group.squares.back());
  state_.emplace_back(name + ".step", group.steps.back());
}

void Optimizer::step(double learning_rate) {
  const torch::NoGradGuard no_gradients;
  for (AdamGroup* group : {&decayed_, &undecayed_}) {
    if (group->parameters.empty()) continue;
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : group->parameters) gradients.push_back(parameter.grad());
    at::_foreach_add_(group->steps, 1);  // the fused kernel only reads them
    at::_fused_adamw_(group->parameters, gradients, group->means, group->squares, {}, group->steps,
                      learning_rate, config_.beta1, config_.beta2, group->weight_decay, config_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  if (!matrices_.empty()) step_muon(learning_rate);
}

// The size of an update is matched to AdamW's (Liu et al., 2025), so that one learning rate and one decay
// serve both.
void Optimizer::step_muon(double learning_rate) {
  for (MuonMatrix& matrix : matrices_) {
    const torch::Tensor gradient = matrix.parameter.grad();
    matrix.momentum.mul_(muon_momentum).add_(gradient);
    const torch::Tensor ahead = gradient.add(matrix.momentum, muon_momentum);  // Nesterov's
    matrix.parameter.mul_(1 - learning_rate * config_.weight_decay);
    int64_t row = 0;
    for (const int64_t rows : matrix.part_rows) {
      const double size = 0.2 * std::sqrt(static_cast<double>(std::max(rows, ahead.size(1))));
      matrix.parameter.slice(0, row, row + rows)
          .sub_(orthogonalise(ahead.slice(0, row, row + rows)), learning_rate * size);
      row += rows;
    }
  }
}

NamedTensors Optimizer::state() const { return state_; }

torch::Tensor orthogonalise(const torch::Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);
  torch::Tensor x = tall ? matrix.t() : matrix;
  x = x / (x.norm() + 1e-7);
  for (int i = 0; i < 5; ++i) {  // an odd polynomial that drives every singular value towards 1
    const torch::Tensor square = torch::mm(x, x.t());
    x = 3.4445 * x + torch::mm(-4.7750 * square + 2.0315 * torch::mm(square, square), x);
  }
  return tall ? x.t() : x;
}

}  // namespace calque
