#include "calque/train/rank_prefetcher.h"

#include <utility>

namespace calque {

RankPrefetcher::RankPrefetcher(ProcessGroup& group, std::function<Batch()> make) : group_(group) {
  prefetcher_.emplace([make = std::move(make)]() -> std::optional<Batch> { return make(); });
}

RankPrefetcher::~RankPrefetcher() {
  const ProcessGroup::LongWork ending(group_);
  prefetcher_.reset();
}

Batch RankPrefetcher::next() {
  const ProcessGroup::LongWork waiting(group_);
  return *prefetcher_->next();
}

}  // namespace calque
