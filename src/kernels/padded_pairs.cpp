#include "calque/kernels/padded_pairs.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "calque/kernels/cached_attention.h"
#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;

// Groups whose padding is smaller than this are not split: an operation more would cost more.
constexpr int64_t spare_cells = 1 << 16;  // mutate: speed only; a cell is one score, of one head
constexpr int64_t padded_multiple = 8;    // mutate: speed only

struct PairSize {
  int64_t queries, rows;
};

// Splits where the rectangle would be more than twice its content: pairs with less than half the queries of
// the largest go into a group of their own, then those with less than half the rows. Each split halves a
// side, so the number of groups grows with the logarithm of the lengths, not with the number of pairs.
void split_groups(const std::vector<PairSize>& sizes, const std::vector<size_t>& pairs,
                  std::vector<std::vector<size_t>>& groups) {
  PairSize largest{0, 0};
  int64_t cells = 0;
  for (const size_t pair : pairs) {
    largest.queries = std::max(largest.queries, sizes[pair].queries);
    largest.rows = std::max(largest.rows, sizes[pair].rows);
    cells += sizes[pair].queries * sizes[pair].rows;
  }
  const int64_t padded = static_cast<int64_t>(pairs.size()) * largest.queries * largest.rows;
  if (padded > 2 * cells + spare_cells) {
    for (const auto side : {&PairSize::queries, &PairSize::rows}) {
      std::vector<size_t> large, small;
      for (const size_t pair : pairs)
        (2 * (sizes[pair].*side) >= largest.*side ? large : small).push_back(pair);
      if (small.empty()) continue;
      split_groups(sizes, large, groups);
      split_groups(sizes, small, groups);
      return;
    }
  }
  groups.push_back(pairs);
}

// place: [pairs, 1, queries, 1]; prefix: [pairs, 1, 1, 1]. Rows that pad a pair come after all of its
// queries.
Tensor score_mask(const Tensor& place, const Tensor& prefix, int64_t rows) {
  const Tensor column = torch::arange(rows, place.options());
  return ((column > place) & (column >= prefix)).to(torch::kFloat32).mul_(masked_score);
}

// Writes the indices of all groups into one list, which reaches the device in one copy, and takes the groups'
// tensors out of the copy in the same order.
class Padder {
 public:
  Padder(const Layout& layout, const CacheIndex* index) : layout_(layout), index_(index) {
    for (size_t pair = 0; pair < layout.prefix_ends.size(); ++pair) {
      sizes_.push_back({layout.query_offsets[pair + 1] - layout.query_offsets[pair],
                        first_row(pair + 1) - first_row(pair)});
    }
  }

  PaddedPairs pad() {
    std::vector<size_t> all;
    for (size_t pair = 0; pair < sizes_.size(); ++pair) {
      if (sizes_[pair].queries > 0) all.push_back(pair);
    }
    std::vector<std::vector<size_t>> members;
    if (!all.empty()) split_groups(sizes_, all, members);
    PaddedPairs padded;
    std::vector<int64_t> output_index(static_cast<size_t>(layout_.queries()));
    for (const auto& pairs : members) padded.groups.push_back(write_group(pairs, output_index));
    values_.insert(values_.end(), output_index.begin(), output_index.end());
    if (index_ != nullptr) values_.insert(values_.end(), index_->slots.begin(), index_->slots.end());
    on_device_ = index_tensor(values_, layout_.positions.device());
    for (PaddedGroup& group : padded.groups) read_group(group);
    padded.output_index = take(layout_.queries());
    if (index_ != nullptr) padded.slots = take(static_cast<int64_t>(index_->slots.size()));
    return padded;
  }

 private:
  int64_t first_row(size_t pair) const {
    return index_ != nullptr ? index_->visible_offsets[pair] : layout_.offsets[pair];
  }
  int64_t prefix_rows(size_t pair) const {
    return index_ != nullptr ? index_->prefix_lengths[pair]
                             : layout_.prefix_ends[pair] - layout_.offsets[pair];
  }

  PaddedGroup write_group(const std::vector<size_t>& pairs, std::vector<int64_t>& output_index) {
    PaddedGroup group;
    group.pairs = static_cast<int64_t>(pairs.size());
    for (const size_t pair : pairs) {
      group.queries = std::max(group.queries, sizes_[pair].queries);
      group.rows =
          std::max(group.rows, (sizes_[pair].rows + padded_multiple - 1) / padded_multiple * padded_multiple);
    }
    for (const size_t pair : pairs) {
      const int64_t first = layout_.query_offsets[pair], count = sizes_[pair].queries;
      for (int64_t i = 0; i < group.queries; ++i) values_.push_back(first + std::min(i, count - 1));
      std::iota(output_index.begin() + first, output_index.begin() + first + count, outputs_);
      outputs_ += group.queries;
    }
    for (const size_t pair : pairs) {
      for (int64_t i = 0; i < group.rows; ++i) {
        const int64_t row = first_row(pair) + std::min(i, sizes_[pair].rows - 1);
        values_.push_back(index_ != nullptr ? index_->visible[static_cast<size_t>(row)] : row);
      }
    }
    for (const size_t pair : pairs) {  // the queries are the last rows of a pair
      const auto [queries, rows] = sizes_[pair];
      for (int64_t i = 0; i < group.queries; ++i)
        values_.push_back(rows - queries + std::min(i, queries - 1));
    }
    for (const size_t pair : pairs) values_.push_back(prefix_rows(pair));
    return group;
  }

  void read_group(PaddedGroup& group) {
    group.query_index = take(group.pairs * group.queries);
    group.row_index = take(group.pairs * group.rows);
    group.query_rows = take(group.pairs * group.queries).view({group.pairs, 1, group.queries, 1});
    const Tensor prefix = take(group.pairs).view({-1, 1, 1, 1});
    group.mask = score_mask(group.query_rows, prefix, group.rows);
  }

  Tensor take(int64_t count) {
    const int64_t begin = std::exchange(taken_, taken_ + count);
    return on_device_.slice(0, begin, taken_);
  }

  const Layout& layout_;
  const CacheIndex* index_;
  std::vector<PairSize> sizes_;
  std::vector<int64_t> values_;
  int64_t outputs_ = 0, taken_ = 0;
  Tensor on_device_;
};

}  // namespace

PaddedPairs pad_pairs(const Layout& layout, const CacheIndex* index) { return Padder(layout, index).pad(); }

std::shared_ptr<const PaddedPairs> padding_for(const Tensor& x, const Layout& layout,
                                               const CacheIndex* index) {
  return is_fast(x) ? nullptr : std::make_shared<const PaddedPairs>(pad_pairs(layout, index));
}

}  // namespace calque
