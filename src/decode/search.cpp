#include "calque/decode/search.h"

#include "calque/base/error.h"

#include <ATen/Parallel.h>

#include "calque/decode/request_queue.h"
#include "searcher.h"

namespace calque {

void refuse_logits() {
  throw UserError("the model gives no probabilities: its logits are not finite",
                  "its weights, or scales and epsilons of its configuration, are damaged or too large");
}
namespace {

// With fewer, threads that share each pass are faster, because their shares are equal. Between the two
// numbers nothing changes: what arrives while the workers finish has to wait, so they should rarely have to.
// Per thread.
constexpr int64_t sentences_to_begin_workers = 8, sentences_to_end_workers = 4;  // mutate: speed only

}  // namespace

int64_t longest_source(const ModelConfig& model, const SequenceFormat& format) {
  return std::max<int64_t>(1, (model.context_length - format.rows(0, 0)) / 2);
}

Search::Search(const Decoder& decoder, SearchOptions options)
    : decoder_(decoder), options_(std::move(options)) {}
Search::~Search() = default;

// With few sentences the threads share the work of each pass. With many, every thread is a worker that
// searches on its own and meets the others only at the queue.
void Search::run(const NextRequest& next, const RequestDone& done, const RequestProgress& progress) {
  const torch::NoGradGuard no_gradients;
  check_decode(options_.decode);
  for (const auto& worker : workers_) worker->reset();
  const int64_t batch = options_.decode.batch;
  RequestQueue queue(next, done, progress);
  while (const int64_t ahead = queue.look_ahead(batch)) {
    const int64_t threads = at::get_num_threads(), many = threads * sentences_to_begin_workers;
    const bool can_have_workers = decoder_.packed_precision() && threads > 1 && many <= batch;
    const int64_t count = can_have_workers && ahead >= many ? threads : 1;
    while (static_cast<int64_t>(workers_.size()) < count)
      workers_.push_back(std::make_unique<Searcher>(decoder_, options_));
    if (count == 1) {
      if (can_have_workers) queue.end_when_more_than(many);
      workers_.front()->run(queue, batch, batch);
      continue;  // mutate: speed only; nothing is left for other workers
    }
    queue.end_when_fewer_than(threads * sentences_to_end_workers);
    const int64_t first = (ahead + count - 1) / count;  // mutate: speed only
    const int64_t most = (batch + count - 1) / count;   // mutate: speed only
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      const torch::NoGradGuard no_gradients_here;
      try {
        for (int64_t i = begin; i < end; ++i) workers_[static_cast<size_t>(i)]->run(queue, first, most);
      } catch (...) {
        queue.stop();  // the other workers finish what they have begun
        throw;
      }
    });
  }
}

}  // namespace calque
