#include "calque/train/parameter_shards.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace calque {

using nlohmann::json;
using torch::Tensor;

namespace {

// Multiplications per update, up to a constant. Muon's iterations multiply each part by its own square.
double work(const TrainedParameter& parameter, OptimizerKind optimizer) {
  const auto size = static_cast<double>(parameter.tensor.numel());
  if (optimizer != OptimizerKind::muon) return size;
  double products = 0;
  for (const int64_t rows : parameter.part_rows) {
    const int64_t columns = parameter.tensor.size(1), shorter = std::min(rows, columns);
    products += static_cast<double>(rows * columns) * static_cast<double>(shorter);
  }
  return size + products;
}

int64_t elements(const std::vector<TrainedParameter>& parameters) {
  return std::accumulate(parameters.begin(), parameters.end(), int64_t{0},
                         [](int64_t sum, const TrainedParameter& one) { return sum + one.tensor.numel(); });
}

}  // namespace

ParameterShards::ParameterShards(std::vector<TrainedParameter> parameters, OptimizerKind optimizer,
                                 ProcessGroup& group, bool divided)
    : group_(group), by_rank_(divided ? static_cast<size_t>(group.size()) : 1) {
  if (by_rank_.size() == 1) {
    by_rank_.front() = std::move(parameters);
    return;
  }
  own_ = static_cast<size_t>(group.rank());
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](const auto& a, const auto& b) { return work(a, optimizer) > work(b, optimizer); });
  std::vector<double> load(by_rank_.size());
  for (const TrainedParameter& parameter : parameters) {  // the largest first, to whoever has the least
    const auto rank = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[rank] += work(parameter, optimizer);
    by_rank_[rank].push_back(parameter);
  }
}

void ParameterShards::exchange() const {
  if (by_rank_.size() == 1) return;
  int64_t longest = 1;
  for (const auto& parameters : by_rank_) longest = std::max(longest, elements(parameters));
  Tensor own_values = torch::zeros({longest}, torch::kFloat32);
  int64_t at = 0;
  for (const TrainedParameter& parameter : own()) {
    own_values.slice(0, at, at + parameter.tensor.numel()).copy_(parameter.tensor.detach().flatten());
    at += parameter.tensor.numel();
  }
  const Tensor all = group_.gather(own_values);  // [ranks, longest]
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank == group_.rank()) continue;
    at = 0;
    for (const TrainedParameter& parameter : by_rank_[static_cast<size_t>(rank)]) {
      const int64_t size = parameter.tensor.numel();
      parameter.tensor.detach().copy_(all[rank].slice(0, at, at + size).view_as(parameter.tensor));
      at += size;
    }
  }
}

namespace {

struct Shape {
  std::string name;
  std::vector<int64_t> sizes;
  int64_t elements() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
};

// The names and shapes of every rank's tensors.
std::vector<std::vector<Shape>> all_shapes(ProcessGroup& group, const NamedTensors& own) {
  json described = json::array();
  for (const auto& [name, tensor] : own) described.push_back({name, tensor.sizes().vec()});
  std::vector<std::vector<Shape>> shapes;
  for (const std::string& text : group.gather(described.dump())) {
    shapes.emplace_back();
    for (const json& one : json::parse(text))
      shapes.back().push_back({one[0].get<std::string>(), one[1].get<std::vector<int64_t>>()});
  }
  return shapes;
}

Tensor flatten(const NamedTensors& tensors) {
  std::vector<Tensor> parts = {torch::empty({0}, torch::kFloat32)};
  for (const auto& [name, tensor] : tensors) parts.push_back(tensor.detach().cpu().flatten());
  return torch::cat(parts);
}

int64_t elements(const std::vector<Shape>& shapes) {
  return std::accumulate(shapes.begin(), shapes.end(), int64_t{0},
                         [](int64_t sum, const Shape& shape) { return sum + shape.elements(); });
}

}  // namespace

NamedTensors collect_tensors(ProcessGroup& group, const NamedTensors& own) {
  NamedTensors all;
  const auto shapes = all_shapes(group, own);
  if (!group.is_first()) {
    if (!own.empty()) group.send(flatten(own), 0);
    return all;
  }
  for (const auto& [name, tensor] : own) all.emplace_back(name, tensor.detach().cpu().clone());
  for (int rank = 1; rank < group.size(); ++rank) {
    const auto& theirs = shapes[static_cast<size_t>(rank)];
    if (theirs.empty()) continue;
    const Tensor values = torch::empty({elements(theirs)}, torch::kFloat32);
    group.receive(values, rank);
    int64_t at = 0;
    for (const Shape& shape : theirs) {
      all.emplace_back(shape.name, values.slice(0, at, at + shape.elements()).view(shape.sizes).clone());
      at += shape.elements();
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

void distribute_tensors(ProcessGroup& group, const NamedTensors& own,
                        const std::function<Tensor(const std::string& name)>& read) {
  const auto shapes = all_shapes(group, own);
  if (group.is_first()) {
    for (int rank = 1; rank < group.size(); ++rank) {
      NamedTensors theirs;
      for (const Shape& shape : shapes[static_cast<size_t>(rank)])
        theirs.emplace_back(shape.name, read(shape.name));
      if (!theirs.empty()) group.send(flatten(theirs), rank);
    }
    for (const auto& [name, tensor] : own) tensor.detach().copy_(read(name));
    return;
  }
  if (own.empty()) return;
  const Tensor values = torch::empty({elements(shapes[static_cast<size_t>(group.rank())])}, torch::kFloat32);
  group.receive(values, 0);
  int64_t at = 0;
  for (const auto& [name, tensor] : own) {
    tensor.detach().copy_(values.slice(0, at, at + tensor.numel()).view_as(tensor));
    at += tensor.numel();
  }
}

}  // namespace calque
