// RankPrefetcher: the Prefetcher of one rank. The other ranks wait for as long as its batches take: a
// tokenizer that samples tokenises the whole corpus again for every epoch.
#pragma once

#include <functional>
#include <optional>

#include "calque/data/prefetcher.h"
#include "calque/distributed/process_group.h"

namespace calque {

class RankPrefetcher {
 public:
  // Keeps a reference to the group. `make` as for Prefetcher, without an end.
  RankPrefetcher(ProcessGroup& group, std::function<Batch()> make);
  ~RankPrefetcher();  // waits until the batch that is being made is done
  RankPrefetcher(const RankPrefetcher&) = delete;
  RankPrefetcher& operator=(const RankPrefetcher&) = delete;

  Batch next();
  double waited_seconds() const { return prefetcher_->waited_seconds(); }

 private:
  ProcessGroup& group_;
  std::optional<Prefetcher> prefetcher_;
};

}  // namespace calque
