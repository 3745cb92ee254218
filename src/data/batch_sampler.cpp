#include "calque/data/batch_sampler.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/data/permutation.h"

namespace calque {

BatchSampler::BatchSampler(const TokenStore& store, SequenceFormat format, BatchSamplerOptions options)
    : store_(store), format_(std::move(format)), options_(std::move(options)) {
  if (options_.weights.empty()) options_.weights.assign(store.parts(), 1.0);
  const LengthGroup& longest = store.groups().back();
  if (format_.rows(longest.tokens, 0) > options_.batch_tokens) {
    const PairRecord& record = store.record(static_cast<int64_t>(longest.first_record));
    throw UserError(
        fmt::format("train.batch_tokens={} is too small for the pair at line {} (part {} of the corpus), "
                    "which needs {} tokens",
                    options_.batch_tokens, record.line, record.part + 1, format_.rows(longest.tokens, 0)),
        "increase train.batch_tokens or decrease data.max_tokens");
  }
}

// The number of draws from a group before `epoch`. With weight w, a group of n pairs has n·w draws per epoch.
// The draws of all epochs form one endless sequence, in which every block of n draws contains each pair once.
int64_t BatchSampler::draws_before(const LengthGroup& group, int64_t epoch) const {
  constexpr double rounding = 1e-9;  // mutate: any small number
  const double weight = options_.weights[group.part];
  return std::llround(
      std::floor(static_cast<double>(group.count) * weight * static_cast<double>(epoch) + rounding));
}

int64_t BatchSampler::drawn_pair(int64_t group_index, int64_t draw, int64_t epoch) const {
  const LengthGroup& group = store_.groups()[group_index];
  const auto count = static_cast<int64_t>(group.count);
  const int64_t place = draws_before(group, epoch) + draw;
  if (!options_.shuffle) return static_cast<int64_t>(group.first_record) + place % count;
  const Permutation order(count, mix(options_.seed, mix(group_index, 0xD4A3), place / count));
  return static_cast<int64_t>(group.first_record) + order(place % count);
}

// Fills batches greedily in order of length. Within a group, all batches except the first and the last take
// the same number of pairs, so that a group needs at most three segments, however many pairs it has.
void BatchSampler::plan(int64_t epoch) {
  if (epoch == planned_epoch_) return;
  segments_.clear();
  int64_t batch = 0;
  int64_t used_rows = 0;
  const auto groups = store_.groups();
  for (int64_t g = 0; g < static_cast<int64_t>(groups.size()); ++g) {
    const int64_t rows = format_.rows(groups[g].tokens, 0);
    const int64_t draws = draws_before(groups[g], epoch + 1) - draws_before(groups[g], epoch);
    int64_t assigned = 0;
    while (assigned < draws) {
      const int64_t room = (options_.batch_tokens - used_rows) / rows;
      if (room == 0) {
        ++batch;
        used_rows = 0;
        continue;
      }
      const int64_t left = draws - assigned;
      if (used_rows > 0 || left <= room) {  // fill up a started batch, or take all that are left
        const int64_t take = std::min(room, left);
        segments_.push_back({g, batch, assigned, take, take});
        used_rows += take * rows;
        assigned += take;
      } else {  // as many full batches as possible
        const int64_t whole = left / room;
        segments_.push_back({g, batch, assigned, whole * room, room});
        assigned += whole * room;
        batch += whole;
      }
    }
  }
  batches_ = batch + (used_rows > 0 ? 1 : 0);
  planned_epoch_ = epoch;
}

int64_t BatchSampler::steps(int64_t epoch) {
  plan(epoch);
  return batches_;
}

std::vector<int64_t> BatchSampler::pairs(int64_t epoch, int64_t step) {
  plan(epoch);
  if (step >= batches_) return {};
  const int64_t batch =
      options_.shuffle
          ? Permutation(batches_, mix(options_.seed, 0xBA7C4, static_cast<uint64_t>(epoch)))(step)
          : step;
  // Start at the last segment that begins at or before the batch; segments before it may also contain it.
  auto segment = std::upper_bound(segments_.begin(), segments_.end(), batch,
                                  [](int64_t index, const Segment& one) { return index < one.first_batch; });
  std::vector<int64_t> found;
  while (segment != segments_.begin()) {
    --segment;
    const int64_t skipped = (batch - segment->first_batch) * segment->per_batch;
    if (skipped >= segment->draws) break;  // ends before this batch, and so do all earlier segments
    const int64_t end = std::min(skipped + segment->per_batch, segment->draws);
    for (int64_t draw = skipped; draw < end; ++draw) {
      found.push_back(drawn_pair(segment->group, segment->first_draw + draw, epoch));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int64_t> share_of(const std::vector<int64_t>& pairs, int rank, int ranks) {
  std::vector<int64_t> share;
  const auto turn = static_cast<size_t>(ranks), place = static_cast<size_t>(rank);
  for (size_t first = 0; first < pairs.size(); first += turn) {
    const size_t at = first + (first / turn % 2 == 0 ? place : turn - 1 - place);
    if (at < pairs.size()) share.push_back(pairs[at]);
  }
  return share;
}

}  // namespace calque
