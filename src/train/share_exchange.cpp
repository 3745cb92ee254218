#include "calque/train/share_exchange.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

namespace calque {

using torch::Tensor;

namespace {

// Messages have two ends, and an end can be at one message at a time. So each is given the first round in
// which neither of its ranks has another.
void order_by_rounds(std::vector<ExchangePlan::Move>& moves, size_t ranks) {
  std::vector<std::set<int>> taken(ranks);
  std::vector<std::pair<int, ExchangePlan::Move>> in_rounds;
  for (const ExchangePlan::Move& move : moves) {
    auto &from = taken[static_cast<size_t>(move.from)], &to = taken[static_cast<size_t>(move.to)];
    int round = 0;
    while (from.contains(round) || to.contains(round)) ++round;
    from.insert(round);
    to.insert(round);
    in_rounds.emplace_back(round, move);
  }
  std::stable_sort(in_rounds.begin(), in_rounds.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < moves.size(); ++i) moves[i] = in_rounds[i].second;
}

}  // namespace

ExchangePlan plan_exchange(const std::vector<int64_t>& share_sizes) {
  ExchangePlan plan;
  for (const int64_t size : share_sizes) plan.elements += size;
  const auto ranks = static_cast<int64_t>(share_sizes.size());
  plan.piece = (plan.elements + ranks - 1) / ranks;
  int64_t begin = 0;
  for (int64_t from = 0; from < ranks; ++from) {
    const int64_t end = begin + share_sizes[static_cast<size_t>(from)];
    while (begin < end) {
      const int64_t to = begin / plan.piece, stop = std::min(end, (to + 1) * plan.piece);
      if (from != to) plan.moves.push_back({static_cast<int>(from), static_cast<int>(to), begin, stop});
      begin = stop;
    }
  }
  order_by_rounds(plan.moves, share_sizes.size());
  return plan;
}

ShareExchange::ShareExchange(const std::vector<std::vector<Tensor>>& shares, DeviceGroup& group,
                             int64_t window)
    : group_(group), window_(window) {
  std::vector<int64_t> sizes;
  int64_t begin = 0;
  for (const auto& share : shares) {
    const int64_t before = begin;
    for (const Tensor& tensor : share) {
      places_.push_back({begin, tensor.detach().view(-1)});
      begin += tensor.numel();
    }
    sizes.push_back(begin - before);
  }
  plan_ = plan_exchange(sizes);
}

template <class Use>
void ShareExchange::for_each_place(int64_t begin, int64_t end, const Use& use) const {
  auto place = std::upper_bound(places_.begin(), places_.end(), begin,
                                [](int64_t at, const Place& one) { return at < one.begin; });
  --place;
  for (; begin < end; ++place) {
    const int64_t first = begin - place->begin, last = std::min(end - place->begin, place->values.numel());
    if (last > first) use(place->values.slice(0, first, last));
    begin = place->begin + last;
  }
}

Tensor ShareExchange::read(int64_t begin, int64_t end) const {
  Tensor values = torch::empty({end - begin}, torch::device(group_.device()));
  int64_t at = 0;
  for_each_place(begin, end, [&](const Tensor& part) {
    values.slice(0, at, at + part.numel()).copy_(part);
    at += part.numel();
  });
  return values;
}

void ShareExchange::write(int64_t begin, const Tensor& values) const {
  int64_t at = 0;
  for_each_place(begin, begin + values.numel(), [&](const Tensor& part) {
    part.copy_(values.slice(0, at, at + part.numel()));
    at += part.numel();
  });
}

void ShareExchange::move() const {
  const int rank = group_.group().rank();
  for (const ExchangePlan::Move& move : plan_.moves) {
    for (int64_t begin = move.begin; begin < move.end; begin += window_) {
      const int64_t end = std::min(move.end, begin + window_);
      if (move.from == rank) group_.send(read(begin, end), move.to);
      if (move.to != rank) continue;
      const Tensor values = torch::empty({end - begin}, torch::device(group_.device()));
      group_.receive(values, move.from);
      write(begin, values);
    }
  }
}

void ShareExchange::run() const {
  move();
  const int64_t ranks = group_.group().size(), own_rank = group_.group().rank();
  const int64_t step = std::max<int64_t>(1, window_ / ranks);
  for (int64_t done = 0; done < plan_.piece; done += step) {
    const int64_t length = std::min(step, plan_.piece - done);
    const auto range = [&](int64_t rank) {
      const int64_t begin = std::min(plan_.elements, rank * plan_.piece + done);
      const int64_t end = std::min({plan_.elements, (rank + 1) * plan_.piece, begin + length});
      return std::pair(begin, std::max(begin, end));
    };
    const auto [own_begin, own_end] = range(own_rank);
    Tensor own = torch::zeros({length}, torch::device(group_.device()));
    if (own_end > own_begin) own.slice(0, 0, own_end - own_begin).copy_(read(own_begin, own_end));
    const Tensor all = group_.gather(own);  // [ranks, length]
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto [begin, end] = range(rank);
      if (rank != own_rank && end > begin) write(begin, all[rank].slice(0, 0, end - begin));
    }
  }
}

}  // namespace calque
