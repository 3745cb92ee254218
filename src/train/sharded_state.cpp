#include "calque/train/sharded_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "calque/train/parameter_division.h"

namespace calque {

using nlohmann::json;
using torch::Tensor;

namespace {

struct Shape {
  SliceName name;
  std::vector<int64_t> sizes;
  int64_t elements() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  // Of a slice; counts of steps are the same for all rows.
  bool has_rows() const { return name.is_slice && !sizes.empty(); }
};

// The names and shapes of every rank's tensors.
std::vector<std::vector<Shape>> all_shapes(ProcessGroup& group, const NamedTensors& own) {
  json described = json::array();
  for (const auto& [name, tensor] : own) described.push_back({name, tensor.sizes().vec()});
  std::vector<std::vector<Shape>> shapes;
  for (const std::string& text : group.gather(described.dump())) {
    shapes.emplace_back();
    for (const json& one : json::parse(text))
      shapes.back().push_back(
          {parse_slice_name(one[0].get<std::string>()), one[1].get<std::vector<int64_t>>()});
  }
  return shapes;
}

Tensor flatten(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts = {torch::empty({0}, torch::kFloat32)};
  for (const Tensor& tensor : tensors) parts.push_back(tensor.detach().cpu().flatten());
  return torch::cat(parts);
}

int64_t elements(const std::vector<Shape>& shapes) {
  return std::accumulate(shapes.begin(), shapes.end(), int64_t{0},
                         [](int64_t sum, const Shape& shape) { return sum + shape.elements(); });
}

// The tensors of all ranks by name, to be filled.
std::map<std::string, Tensor> make_wholes(const std::vector<std::vector<Shape>>& shapes) {
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const auto& of_rank : shapes) {
    for (const Shape& shape : of_rank) {
      auto& whole = sizes.try_emplace(shape.name.whole, shape.sizes).first->second;
      if (shape.has_rows()) whole.front() = std::max(whole.front(), shape.name.end);
    }
  }
  std::map<std::string, Tensor> wholes;
  for (const auto& [name, size] : sizes) wholes[name] = torch::empty(size, torch::kFloat32);
  return wholes;
}

Tensor rows_of(const Tensor& whole, const Shape& shape) {
  return shape.has_rows() ? whole.slice(0, shape.name.begin, shape.name.end) : whole;
}

}  // namespace

NamedTensors collect_tensors(ProcessGroup& group, const NamedTensors& own) {
  const auto shapes = all_shapes(group, own);
  if (!group.is_first()) {
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : own) tensors.push_back(tensor);
    if (!own.empty()) group.send(flatten(tensors), 0);
    return {};
  }
  auto wholes = make_wholes(shapes);
  for (size_t i = 0; i < own.size(); ++i) {
    const Shape& shape = shapes.front()[i];
    rows_of(wholes.at(shape.name.whole), shape).copy_(own[i].second.detach());
  }
  for (int rank = 1; rank < group.size(); ++rank) {
    const auto& theirs = shapes[static_cast<size_t>(rank)];
    if (theirs.empty()) continue;
    const Tensor values = torch::empty({elements(theirs)}, torch::kFloat32);
    group.receive(values, rank);
    int64_t at = 0;
    for (const Shape& shape : theirs) {
      rows_of(wholes.at(shape.name.whole), shape)
          .copy_(values.slice(0, at, at + shape.elements()).view(shape.sizes));
      at += shape.elements();
    }
  }
  return {wholes.begin(), wholes.end()};
}

void distribute_tensors(ProcessGroup& group, const NamedTensors& own,
                        const std::function<Tensor(const std::string& name)>& read) {
  const auto shapes = all_shapes(group, own);
  if (group.is_first()) {
    for (int rank = 1; rank < group.size(); ++rank) {
      std::vector<Tensor> theirs;
      for (const Shape& shape : shapes[static_cast<size_t>(rank)])
        theirs.push_back(rows_of(read(shape.name.whole), shape));
      if (!theirs.empty()) group.send(flatten(theirs), rank);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      const Shape& shape = shapes.front()[i];
      own[i].second.detach().copy_(rows_of(read(shape.name.whole), shape));
    }
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
