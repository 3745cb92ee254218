#include "calque/serve/request_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace calque {

void RequestLog::add(const std::string& route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++counts_[{route, status}];
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  ++buckets_[static_cast<size_t>(bucket)];
  sum_ += seconds;
}

std::string RequestLog::prometheus() const {
  const std::lock_guard lock(mutex_);
  std::string text =
      "# HELP calque_requests_total Requests answered.\n# TYPE calque_requests_total counter\n";
  for (const auto& [key, count] : counts_)
    text +=
        fmt::format("calque_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second, count);
  text +=
      "# HELP calque_request_seconds Time from a request's arrival to its answer.\n"
      "# TYPE calque_request_seconds histogram\n";
  int64_t total = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    total += buckets_[i];
    text += fmt::format("calque_request_seconds_bucket{{le=\"{:g}\"}} {}\n", bounds[i], total);
  }
  total += buckets_.back();
  text += fmt::format(
      "calque_request_seconds_bucket{{le=\"+Inf\"}} {0}\ncalque_request_seconds_sum {1:.6f}\n"
      "calque_request_seconds_count {0}\n",
      total, sum_);
  return text;
}

}  // namespace calque
