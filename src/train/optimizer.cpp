#include "calque/train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"
#include "calque/train/orthogonalise.h"

namespace calque {
namespace {

constexpr double muon_momentum = 0.95;

// A matrix that has at least as many columns as rows.
torch::Tensor wide(const torch::Tensor& x) { return x.size(0) > x.size(1) ? x.t() : x; }

// The gradient with Nesterov momentum.
torch::Tensor update_of(const Optimizer::MuonPart& part) {
  torch::Tensor momentum = part.momentum;
  at::add_out(momentum, part.gradient, momentum, muon_momentum);
  return part.gradient.add(part.momentum, muon_momentum);
}

torch::Dtype muon_precision(const TrainConfig& config) {
  return config.precision == Precision::bfloat16 ? torch::kBFloat16 : torch::kFloat32;
}

double update_size(const Optimizer::MuonPart& part) {
  const int64_t longer = std::max(part.parameter.size(0), part.parameter.size(1));
  return part.rate * 0.2 * std::sqrt(static_cast<double>(longer));
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
    at::_foreach_add_(group.steps, 1);  // the fused kernel only reads them
    step_adam(group, learning_rate * group.lr_scale);
  }
  if (!matrices_.empty()) step_muon(learning_rate);
}

// On the CPU in slices of about equal size, whatever the sizes of the parameters; on other devices all at
// once.
void Optimizer::step_adam(AdamGroup& group, double learning_rate) {
  using Tensors = std::vector<torch::Tensor>;
  const auto update = [&](Tensors parameters, const Tensors& gradients, Tensors means, Tensors squares,
                          const Tensors& steps) {
    at::_fused_adamw_(parameters, gradients, means, squares, {}, steps, learning_rate, config_.beta1,
                      config_.beta2, group.weight_decay, config_.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
  };
  Tensors gradients;
  for (const torch::Tensor& parameter : group.parameters) gradients.push_back(parameter.grad().contiguous());
  if (!group.parameters.front().is_cpu()) {
    update(group.parameters, gradients, group.means, group.squares, group.steps);
    return;
  }
  struct Slice {
    size_t parameter;
    int64_t begin, end;
  };
  constexpr int64_t slice_values = 1 << 17;  // mutate: speed only
  std::vector<Slice> slices;
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    const int64_t size = group.parameters[i].numel();
    for (int64_t begin = 0; begin < size; begin += slice_values)
      slices.push_back({i, begin, std::min(size, begin + slice_values)});
  }
  parallel_units(static_cast<int64_t>(slices.size()), num_threads(), [&](int64_t unit) {
    const torch::NoGradGuard no_gradients;  // a setting of each thread
    const auto [i, begin, end] = slices[static_cast<size_t>(unit)];
    const auto part = [begin = begin, end = end](const torch::Tensor& whole) {
      return Tensors{whole.view(-1).slice(0, begin, end)};
    };
    update(part(group.parameters[i]), part(gradients[i]), part(group.means[i]), part(group.squares[i]),
           {group.steps[i]});
  });
}

// The size of an update is matched to AdamW's (Liu et al., 2025), so that one learning rate and one decay
// serve both.
void Optimizer::step_muon(double learning_rate) {
  std::vector<MuonPart> parts;
  for (MuonMatrix& matrix : matrices_) {
    int64_t row = 0;
    for (const int64_t rows : matrix.part_rows) {
      parts.push_back({matrix.parameter.slice(0, row, row + rows), matrix.momentum.slice(0, row, row + rows),
                       matrix.parameter.grad().slice(0, row, row + rows), learning_rate * matrix.lr_scale});
      row += rows;
    }
  }
  if (!parts.front().parameter.is_cpu()) {
    update_together(parts);
    return;
  }
  // The largest first: whoever becomes free last should have the least to do.
  std::stable_sort(parts.begin(), parts.end(), [](const MuonPart& a, const MuonPart& b) {
    return a.parameter.numel() > b.parameter.numel();
  });
  const auto update = [&](int64_t unit) {
    const torch::NoGradGuard no_gradients;  // a setting of each thread
    const MuonPart& part = parts[static_cast<size_t>(unit)];
    const OrthogonalFactor result =
        orthogonal_factor(wide(update_of(part)), config_.muon_method, muon_precision(config_));
    part.parameter.mul_(1 - part.rate * config_.weight_decay);
    result.add_product(wide(part.parameter), -update_size(part));
  };
  const auto count = static_cast<int64_t>(parts.size());
  // Fewer matrices than threads come one after the other, and the threads share the products of each.
  if (count >= num_threads()) {  // mutate: speed only
    parallel_units(count, num_threads(), update);
  } else {
    for (int64_t i = 0; i < count; ++i) update(i);
  }
}

// For other devices: matrices of one shape together, a few large products instead of many small ones.
void Optimizer::update_together(const std::vector<MuonPart>& parts) const {
  std::map<std::pair<int64_t, int64_t>, std::vector<const MuonPart*>>
      by_shape;  // (shorter side, longer side)
  for (const MuonPart& part : parts) {
    const int64_t rows = part.parameter.size(0), columns = part.parameter.size(1);
    by_shape[{std::min(rows, columns), std::max(rows, columns)}].push_back(&part);
  }
  for (const auto& [sides, same] : by_shape) {
    std::vector<torch::Tensor> updates;
    for (const MuonPart* part : same) updates.push_back(wide(update_of(*part)));
    const torch::Tensor orthogonal =
        reference::orthogonalise(torch::stack(updates), config_.muon_method,
                                 muon_precision(config_));  // [matrices, shorter, longer]
    for (size_t i = 0; i < same.size(); ++i)
      wide(same[i]->parameter)
          .mul_(1 - same[i]->rate * config_.weight_decay)
          .sub_(orthogonal[static_cast<int64_t>(i)], update_size(*same[i]));
  }
}

}  // namespace calque
