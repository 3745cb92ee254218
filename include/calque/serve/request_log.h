// RequestLog: counts requests and their times, for /metrics. It keeps no text.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace calque {

class RequestLog {
 public:
  void add(const std::string& route, int status, double seconds);
  std::string prometheus() const;  // in Prometheus' text format

 private:
  static constexpr std::array<double, 12> bounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                    0.5,   1,    2.5,   5,    10,  30};
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> counts_;
  std::array<int64_t, bounds.size() + 1> buckets_{};
  double sum_ = 0;
};

}  // namespace calque
