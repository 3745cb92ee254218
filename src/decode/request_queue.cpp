#include "calque/decode/request_queue.h"

namespace calque {

int64_t RequestQueue::look_ahead(int64_t most) {
  ended_ = false;
  low_.reset();
  high_.reset();
  while (static_cast<int64_t>(ahead_.size()) < most) {
    auto request = next_(/*wait=*/ahead_.empty());
    if (!request) break;
    ahead_.push_back(std::move(*request));
  }
  return static_cast<int64_t>(ahead_.size());
}

std::optional<SearchRequest> RequestQueue::next() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || ended_) return std::nullopt;
  if (ahead_.empty()) {
    auto request = next_(/*wait=*/false);
    if (!request) {
      ended_ = low_ && in_progress_ < *low_;
      return std::nullopt;
    }
    ahead_.push_back(std::move(*request));
  }
  if (high_ && in_progress_ >= *high_) {
    ended_ = true;
    return std::nullopt;
  }
  SearchRequest request = std::move(ahead_.front());
  ahead_.pop_front();
  ++in_progress_;
  return request;
}

void RequestQueue::done(int64_t id, std::vector<Hypothesis> hypotheses) {
  const std::lock_guard lock(mutex_);
  --in_progress_;
  done_(id, std::move(hypotheses));
}

bool RequestQueue::progress(int64_t id, std::span<const int32_t> tokens) {
  if (!progress_) return true;
  const std::lock_guard lock(mutex_);
  if (progress_(id, tokens)) return true;
  --in_progress_;
  return false;
}

void RequestQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

}  // namespace calque
