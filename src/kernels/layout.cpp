#include "calque/kernels/layout.h"

#include <ATen/EmptyTensor.h>
#include <torch/types.h>

#include <algorithm>

namespace calque {

torch::Tensor index_tensor(const std::vector<int64_t>& values, const torch::Device& device) {
  const torch::Tensor tensor = at::detail::empty_cpu({static_cast<int64_t>(values.size())}, torch::kInt64);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return device.is_cpu() ? tensor : tensor.to(device);
}

Layout query_all_rows(const Layout& layout) {
  if (layout.queries_all_rows()) return layout;
  Layout all = layout;
  all.query_offsets = layout.offsets;
  all.query_rows = torch::arange(layout.rows(), layout.positions.options());
  return all;
}

namespace {

// Elements first … first + count - 1, each less `shift`.
torch::Tensor copy_range(const torch::Tensor& from, int64_t first, int64_t count, int64_t shift) {
  if (!from.device().is_cpu()) return from.slice(0, first, first + count) - shift;
  const torch::Tensor to = at::detail::empty_cpu({count}, torch::kInt64);
  const int64_t* source = from.const_data_ptr<int64_t>() + first;
  std::transform(source, source + count, to.mutable_data_ptr<int64_t>(),
                 [&](int64_t value) { return value - shift; });
  return to;
}

}  // namespace

Layout slice_pairs(const Layout& layout, int64_t begin, int64_t end) {
  const auto cut = [&](const std::vector<int64_t>& from) {
    std::vector<int64_t> part(from.begin() + begin, from.begin() + end + 1);
    for (int64_t& offset : part) offset -= from[static_cast<size_t>(begin)];
    return part;
  };
  const int64_t first_row = layout.offsets[static_cast<size_t>(begin)],
                first_query = layout.query_offsets[static_cast<size_t>(begin)];
  Layout part;
  part.offsets = cut(layout.offsets);
  part.query_offsets = cut(layout.query_offsets);
  for (int64_t pair = begin; pair < end; ++pair)
    part.prefix_ends.push_back(
        std::max<int64_t>(0, layout.prefix_ends[static_cast<size_t>(pair)] - first_row));
  part.positions = copy_range(layout.positions, first_row, part.rows(), 0);
  part.query_rows = copy_range(layout.query_rows, first_query, part.queries(), first_row);
  return part;
}

}  // namespace calque
