// RequestQueue: distributes sentences to several search workers and passes their results on, one at a time.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "calque/decode/search.h"

namespace calque {

class RequestQueue {
 public:
  RequestQueue(const NextRequest& next, const RequestDone& done) : next_(next), done_(done) {}

  // Before any worker runs: waits for a request, then takes those that are available, up to `most`. Returns
  // how many; 0: there are no more.
  int64_t look_ahead(int64_t most);

  // From any thread. Returns nothing if none is available.
  std::optional<SearchRequest> next();
  void done(int64_t id, std::vector<Hypothesis> hypotheses);
  void stop();  // next() returns nothing from here on
  // After it has been empty once, next() returns nothing until look_ahead() is called: all workers finish
  // together, and their number is decided again.
  void end_when_empty() { ends_when_empty_ = true; }

 private:
  std::mutex mutex_;
  const NextRequest& next_;
  const RequestDone& done_;
  std::deque<SearchRequest> ahead_;
  bool stopped_ = false, ends_when_empty_ = false, was_empty_ = false;
};

}  // namespace calque
