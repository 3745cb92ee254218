// RequestQueue: distributes sentences to several search workers and passes their results on, one at a time.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "calque/decode/search.h"

namespace calque {

class RequestQueue {
 public:
  RequestQueue(const NextRequest& next, const RequestDone& done, const RequestProgress& progress)
      : next_(next), done_(done), progress_(progress) {}

  // Before any worker runs: waits for a request, then takes those that are available, up to `most`. Returns
  // how many; 0: there are no more.
  int64_t look_ahead(int64_t most);

  // From any thread. Returns nothing if none is available.
  std::optional<SearchRequest> next();
  void done(int64_t id, std::vector<Hypothesis> hypotheses);
  bool progress(int64_t id, std::span<const int32_t> tokens);  // false: the request was cancelled
  void stop();                                                 // next() returns nothing from here on

  // These let all workers finish, so that their number is decided again: next() returns nothing until
  // look_ahead() is called …
  void end_when_fewer_than(int64_t requests) {
    low_ = requests;
  }  // … once it is empty with fewer in progress
  void end_when_more_than(int64_t requests) { high_ = requests; }  // … once more could be in progress

 private:
  std::mutex mutex_;
  const NextRequest& next_;
  const RequestDone& done_;
  const RequestProgress& progress_;
  std::deque<SearchRequest> ahead_;
  int64_t in_progress_ = 0;
  std::optional<int64_t> low_, high_;
  bool stopped_ = false, ended_ = false;
};

}  // namespace calque
