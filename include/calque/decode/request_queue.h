// RequestQueue: what is to be translated, dealt out to several workers; their results come back one at a
// time.
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

  // Before any worker runs: waits for a request, then takes in as many as are there already, `most` at most.
  // Gives how many; 0: no more.
  int64_t look_ahead(int64_t most);

  // From any thread. Nothing if there is none at this moment.
  std::optional<SearchRequest> next();
  void done(int64_t id, std::vector<Hypothesis> hypotheses);
  void stop();  // from here on there is nothing more
  // Once there is nothing at a moment, there is nothing until one looks ahead again: all workers come to
  // their end together, and how many there should be is decided anew.
  void end_when_dry() { ends_when_dry_ = true; }

 private:
  std::mutex mutex_;
  const NextRequest& next_;
  const RequestDone& done_;
  std::deque<SearchRequest> ahead_;
  bool stopped_ = false, ends_when_dry_ = false, is_dry_ = false;
};

}  // namespace calque
