#include "calque/decode/request_queue.h"

namespace calque {

int64_t RequestQueue::look_ahead(int64_t most) {
  was_empty_ = ends_when_empty_ = false;
  while (static_cast<int64_t>(ahead_.size()) < most) {
    auto request = next_(/*wait=*/ahead_.empty());
    if (!request) break;
    ahead_.push_back(std::move(*request));
  }
  return static_cast<int64_t>(ahead_.size());
}

std::optional<SearchRequest> RequestQueue::next() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || was_empty_) return std::nullopt;
  if (ahead_.empty()) {
    auto request = next_(/*wait=*/false);
    was_empty_ = !request && ends_when_empty_;
    return request;
  }
  SearchRequest request = std::move(ahead_.front());
  ahead_.pop_front();
  return request;
}

void RequestQueue::done(int64_t id, std::vector<Hypothesis> hypotheses) {
  const std::lock_guard lock(mutex_);
  done_(id, std::move(hypotheses));
}

void RequestQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

}  // namespace calque
