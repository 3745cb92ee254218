#include "calque/train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace calque {
namespace {

constexpr double muon_momentum = 0.95;

struct Polynomial {
  double a, b, c;
};

// Polynomials that move every singular value towards 1.
std::vector<Polynomial> polynomials(MuonMethod method) {
  if (method == MuonMethod::newton_schulz) return std::vector<Polynomial>(5, {3.4445, -4.7750, 2.0315});
  // Polar Express (Amsel et al., 2025): each minimises the largest distance from 1 over the interval that the
  // one before leaves, from [0.003, 1] to [0.80, 1.20]. Five times the other leave [0.67, 1.21].
  return {{8.383677, -24.765929, 18.357101},
          {4.043446, -3.01143, 0.569517},
          {3.505629, -2.626697, 0.525724},
          {2.490188, -1.834338, 0.436842}};
}

}  // namespace

Optimizer::Optimizer(const std::vector<TrainedParameter>& parameters, const TrainConfig& config)
    : config_(config) {
  for (const TrainedParameter& parameter : parameters) {
    if (config.optimizer != OptimizerKind::muon || parameter.part_rows.empty()) {
      add_to_adam(parameter);
      continue;
    }
    matrices_.push_back(
        {parameter.tensor, torch::zeros_like(parameter.tensor), parameter.lr_scale, parameter.part_rows});
    state_.emplace_back(parameter.name + ".momentum", matrices_.back().momentum);
  }
}

void Optimizer::add_to_adam(const TrainedParameter& parameter) {
  const torch::Tensor& tensor = parameter.tensor;
  const double decay = tensor.dim() >= 2 ? config_.weight_decay : 0;  // norms and biases do not decay
  auto found = std::find_if(groups_.begin(), groups_.end(), [&](const AdamGroup& group) {
    return group.weight_decay == decay && group.lr_scale == parameter.lr_scale;
  });
  if (found == groups_.end())
    found = groups_.insert(groups_.end(), AdamGroup{decay, parameter.lr_scale, {}, {}, {}, {}});
  AdamGroup& group = *found;
  group.parameters.push_back(tensor);
  group.means.push_back(torch::zeros_like(tensor));
  group.squares.push_back(torch::zeros_like(tensor));
  group.steps.push_back(torch::zeros({}, torch::dtype(torch::kFloat32).device(tensor.device())));
  state_.emplace_back(parameter.name + ".mean", group.means.back());
  state_.emplace_back(parameter.name + ".square", group.squares.back());
  state_.emplace_back(parameter.name + ".step", group.steps.back());
}

void Optimizer::step(double learning_rate) {
  RECORD_USER_SCOPE("optimizer");
  const torch::NoGradGuard no_gradients;
  for (AdamGroup& group : groups_) {
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : group.parameters) gradients.push_back(parameter.grad());
    at::_foreach_add_(group.steps, 1);  // the fused kernel only reads them
    at::_fused_adamw_(group.parameters, gradients, group.means, group.squares, {}, group.steps,
                      learning_rate * group.lr_scale, config_.beta1, config_.beta2, group.weight_decay,
                      config_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  if (!matrices_.empty()) step_muon(learning_rate);
}

// The size of an update is matched to AdamW's (Liu et al., 2025), so that one learning rate and one decay
// serve both. Matrices of one shape are orthogonalised together: a few large products instead of many small
// ones.
void Optimizer::step_muon(double learning_rate) {
  struct Part {
    torch::Tensor parameter, update;  // [rows, columns], views
    double rate;
  };
  std::map<std::pair<int64_t, int64_t>, std::vector<Part>> by_shape;  // (shorter side, longer side)
  for (MuonMatrix& matrix : matrices_) {
    const torch::Tensor gradient = matrix.parameter.grad();
    matrix.momentum.mul_(muon_momentum).add_(gradient);
    const torch::Tensor update = gradient.add(matrix.momentum, muon_momentum);  // Nesterov momentum
    const double rate = learning_rate * matrix.lr_scale;
    matrix.parameter.mul_(1 - rate * config_.weight_decay);
    int64_t row = 0;
    for (const int64_t rows : matrix.part_rows) {
      const int64_t columns = update.size(1);
      by_shape[{std::min(rows, columns), std::max(rows, columns)}].push_back(
          {matrix.parameter.slice(0, row, row + rows), update.slice(0, row, row + rows), rate});
      row += rows;
    }
  }
  const auto precision = config_.precision == Precision::bfloat16 ? torch::kBFloat16 : torch::kFloat32;
  for (const auto& [sides, parts] : by_shape) {
    const auto wide = [&](const torch::Tensor& x) { return x.size(0) > x.size(1) ? x.t() : x; };
    std::vector<torch::Tensor> updates;
    for (const Part& part : parts) updates.push_back(wide(part.update));
    const torch::Tensor orthogonal =
        orthogonalise(torch::stack(updates), config_.muon_method, precision);  // [matrices, shorter, longer]
    const double size = 0.2 * std::sqrt(static_cast<double>(sides.second));
    for (size_t i = 0; i < parts.size(); ++i)
      wide(parts[i].parameter).sub_(orthogonal[static_cast<int64_t>(i)], parts[i].rate * size);
  }
}

torch::Tensor orthogonalise(const torch::Tensor& matrices, MuonMethod method, torch::Dtype precision) {
  torch::Tensor x = (matrices / (matrices.norm(2, {1, 2}, true) + 1e-7)).to(precision);
  for (const Polynomial& p : polynomials(method)) {  // x ← a·x + b·x³ + c·x⁵, on the singular values
    const torch::Tensor square = torch::bmm(x, x.transpose(1, 2));
    const torch::Tensor factor = torch::baddbmm(square, square, square, p.b, p.c);
    x = torch::baddbmm(x, factor, x, p.a, 1);
  }
  return x;
}

}  // namespace calque
