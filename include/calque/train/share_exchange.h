// ShareExchange: copies each rank's share of some values to all ranks, whatever the sizes of the shares. No
// rank receives more than the values themselves.
#pragma once

#include <torch/types.h>

#include <vector>

#include "calque/distributed/device_group.h"

namespace calque {

// An all-gather needs pieces of one size. The shares, one after another, are cut into one piece per rank, and
// what a rank's piece contains of other shares is moved there first.
struct ExchangePlan {
  struct Move {
    int from, to;
    int64_t begin, end;  // elements, counted through all shares
  };
  int64_t piece = 0;  // elements; the last piece may be shorter
  int64_t elements = 0;
  std::vector<Move> moves;  // in an order in which few wait for others
};
ExchangePlan plan_exchange(const std::vector<int64_t>& share_sizes);

class ShareExchange {
 public:
  // `shares`: by rank, contiguous tensors; all ranks have all of them. Keeps a reference to the group. The
  // copies that are on the way take `window` elements at a time.
  ShareExchange(const std::vector<std::vector<torch::Tensor>>& shares, DeviceGroup& group,
                int64_t window = 1 << 24);
  // Afterwards the tensors have on every rank the values of the rank whose share they are.
  void run() const;

 private:
  struct Place {
    int64_t begin;
    torch::Tensor values;  // [elements], a view
  };
  template <class Use>
  void for_each_place(int64_t begin, int64_t end, const Use& use) const;
  torch::Tensor read(int64_t begin, int64_t end) const;
  void write(int64_t begin, const torch::Tensor& values) const;
  void move() const;

  DeviceGroup& group_;
  int64_t window_;
  std::vector<Place> places_;  // one after another
  ExchangePlan plan_;
};

}  // namespace calque
