#include "calque/metrics/ter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "calque/base/unicode.h"

namespace calque {
namespace {

using Words = std::vector<int>;

// The limits of Tercom and sacreBLEU.
constexpr int max_shift_length = 10, max_shift_distance = 50, edit_beam = 25, max_candidates = 1000;
constexpr int unreached = 1'000'000'000;

enum class Edit : char { none, replace, insert, remove };

struct Cell {
  int cost = unreached;
  Edit edit = Edit::none;
};

// The edit distance between a reference and hypotheses of one length, limited to a band around the diagonal:
// only its cells are stored, so the memory grows with the length, not with its square.
class EditDistance {
 public:
  EditDistance(const Words& reference, size_t length)
      : reference_(reference),
        length_(length),
        columns_(static_cast<int64_t>(reference.size()) + 1),
        ratio_(length > 0 ? static_cast<double>(reference.size()) / static_cast<double>(length) : 1),
        beam_(edit_beam < ratio_ / 2 ? static_cast<int>(std::ceil(ratio_ / 2 + edit_beam)) : edit_beam) {
    size_t cells = 0;
    for (size_t i = 0; i <= length; ++i) {
      const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(i) * ratio_));
      const bool whole = i == 0 || i == length;
      const int64_t first = i == 0 ? 0 : std::max<int64_t>(0, diagonal - beam_);
      bands_.push_back({first, whole ? columns_ : std::min(columns_, diagonal + beam_), cells});
      cells += static_cast<size_t>(bands_.back().end - first);
    }
    base_.resize(cells);
    other_.resize(cells);
    for (int64_t j = 0; j < columns_; ++j)
      base_[static_cast<size_t>(j)] = {static_cast<int>(j), Edit::insert};
  }

  // Sets the base hypothesis and returns its distance.
  int set(const Words& words) {
    fill(base_, words, 0);
    words_ = words;
    return base_.back().cost;
  }

  // The distance of another hypothesis. Reuses the rows of the prefix that it shares with the base.
  int distance_of(const Words& words) {
    size_t same = 0;
    while (same < length_ && words[same] == words_[same]) ++same;
    fill(other_, words, same);
    return same == length_ ? base_.back().cost : other_.back().cost;
  }

  // The edits between the reference and the base hypothesis, from the start.
  std::vector<Edit> path() const {
    std::vector<Edit> edits;
    size_t i = length_;
    int64_t j = columns_ - 1;
    while (i > 0 || j > 0) {
      const Edit edit = cell(base_, i, j).edit;
      edits.push_back(edit);
      if (edit != Edit::insert) --i;
      if (edit != Edit::remove) --j;
    }
    std::reverse(edits.begin(), edits.end());
    return edits;
  }

 private:
  struct Band {
    int64_t first, end;  // columns of a row that are stored
    size_t offset;       // of the first of them
  };

  Cell cell(const std::vector<Cell>& cells, size_t row, int64_t column) const {
    const Band& band = bands_[row];
    if (column < band.first || column >= band.end) return {};
    return cells[band.offset + static_cast<size_t>(column - band.first)];
  }

  // Computes the rows after the first `known` words, which are the base's.
  void fill(std::vector<Cell>& cells, const Words& words, size_t known) {
    for (size_t i = known + 1; i <= length_; ++i) {
      const std::vector<Cell>& before = i == known + 1 ? base_ : cells;
      const Band& band = bands_[i];
      Cell left;
      for (int64_t j = band.first; j < band.end; ++j) {
        Cell best;
        if (j == 0) {
          best = {cell(before, i - 1, 0).cost + 1, Edit::remove};
        } else {
          const bool same = words[i - 1] == reference_[static_cast<size_t>(j - 1)];
          const auto offer = [&](int cost, Edit edit) {
            if (best.cost > cost) best = {cost, edit};
          };
          offer(cell(before, i - 1, j - 1).cost + (same ? 0 : 1), same ? Edit::none : Edit::replace);
          offer(cell(before, i - 1, j).cost + 1, Edit::remove);
          offer(left.cost + 1, Edit::insert);
        }
        cells[band.offset + static_cast<size_t>(j - band.first)] = left = best;
      }
    }
  }

  const Words& reference_;
  size_t length_;
  int64_t columns_;
  double ratio_;
  int beam_;
  std::vector<Band> bands_;  // by row
  std::vector<Cell> base_, other_;
  Words words_;
};

// The hypothesis position that each reference position is aligned to; for both sides, 1 for each wrong word.
struct Alignment {
  std::vector<int> to_hypothesis;
  std::vector<int> wrong_reference, wrong_hypothesis;
};

Alignment align(const std::vector<Edit>& edits) {
  Alignment result;
  int position = -1;
  for (const Edit edit : edits) {
    const int wrong = edit == Edit::none ? 0 : 1;
    if (edit != Edit::insert) {  // uses a word of the hypothesis
      ++position;
      result.wrong_hypothesis.push_back(wrong);
    }
    if (edit != Edit::remove) {  // uses a word of the reference
      result.to_hypothesis.push_back(position);
      result.wrong_reference.push_back(wrong);
    }
  }
  return result;
}

Words shifted(const Words& words, int start, int length, int target) {
  const auto at = [&](int i) { return words.begin() + i; };
  const auto add = [](Words& to, Words::const_iterator begin, Words::const_iterator end) {
    to.insert(to.end(), begin, end);
  };
  Words result;
  result.reserve(words.size());
  const int stop = start + length;
  if (target < start) {
    add(result, at(0), at(target));
    add(result, at(start), at(stop));
    add(result, at(target), at(start));
    add(result, at(stop), words.end());
  } else {
    // Moves the block to the right. A target inside the block is where the moved block starts.
    const int size = static_cast<int>(words.size());
    const int behind = std::min(size, target > stop ? target : length + target);
    add(result, at(0), at(start));
    add(result, at(stop), at(std::max(stop, behind)));
    add(result, at(start), at(stop));
    add(result, at(std::max(stop, behind)), words.end());
  }
  return result;
}

bool any_wrong(const std::vector<int>& wrong, int begin, int length) {
  return std::any_of(wrong.begin() + begin, wrong.begin() + begin + length, [](int w) { return w != 0; });
}

// Applies the best shift of a block to its position in the reference and returns the gain (edits saved,
// possibly negative). Returns 0 and leaves `words` unchanged if there is no candidate.
int best_shift(Words& words, const Words& reference, EditDistance& distance, int& candidates) {
  const int before = distance.set(words);
  const Alignment alignment = align(distance.path());
  std::tuple<int, int, int, int> best{};  // gain, length, earliest block, earliest target
  Words best_words;
  const int count = static_cast<int>(words.size()), reference_count = static_cast<int>(reference.size());
  const auto try_block = [&](int start, int reference_start, int length) {
    if (!any_wrong(alignment.wrong_hypothesis, start, length) ||
        !any_wrong(alignment.wrong_reference, reference_start, length))
      return;
    const int aligned = alignment.to_hypothesis[reference_start];
    if (start <= aligned && aligned < start + length) return;
    int last = -1;
    for (int offset = -1; offset < length; ++offset) {
      const int position = reference_start + offset;
      if (position >= reference_count) break;
      const int target = position == -1 ? 0 : alignment.to_hypothesis[position] + 1;
      if (target == last) continue;
      last = target;
      Words moved = shifted(words, start, length, target);
      const std::tuple candidate{before - distance.distance_of(moved), length, -start, -target};
      ++candidates;
      if (best_words.empty() || candidate > best) {
        best = candidate;
        best_words = std::move(moved);
      }
    }
  };
  for (int start = 0; start < count && candidates < max_candidates; ++start) {
    const int end = std::min(reference_count, start + max_shift_distance + 1);
    for (int reference_start = std::max(0, start - max_shift_distance);
         reference_start < end && candidates < max_candidates; ++reference_start) {
      for (int length = 1; length <= max_shift_length && start + length <= count &&
                           reference_start + length <= reference_count &&
                           words[start + length - 1] == reference[reference_start + length - 1] &&
                           candidates < max_candidates;
           ++length) {
        try_block(start, reference_start, length);
      }
    }
  }
  if (best_words.empty()) return 0;
  words = std::move(best_words);
  return std::get<0>(best);
}

int count_edits(Words words, const Words& reference) {
  if (reference.empty()) return static_cast<int>(words.size());
  EditDistance distance(reference, words.size());
  int shifts = 0, candidates = 0;
  for (;;) {
    Words moved = words;
    const int gain = best_shift(moved, reference, distance, candidates);
    if (candidates >= max_candidates || gain <= 0) break;
    ++shifts;
    words = std::move(moved);
  }
  return shifts + distance.set(words);
}

// Statistics: edits, reference length.
class Ter : public Metric {
 public:
  explicit Ter(const TerOptions& options) : options_(options) {}

  std::string name() const override { return "TER"; }
  std::string signature() const override {
    return fmt::format("case:{}|tok:tercom|norm:no|punct:yes|asian:no",
                       options_.case_sensitive ? "mixed" : "lc");
  }
  bool higher_is_better() const override { return false; }

  Statistics count(std::string_view hypothesis, std::span<const std::string> references) const override {
    std::unordered_map<std::u32string, int> numbers;
    const auto number = [&](std::string_view text) {
      const std::u32string all = code_points(options_.case_sensitive ? std::string(text) : lower_case(text));
      Words words;
      for (const auto& word : split_words(all))
        words.push_back(numbers.try_emplace(word, static_cast<int>(numbers.size())).first->second);
      return words;
    };
    const Words words = number(hypothesis);
    double fewest = 1e16, lengths = 0;
    for (const std::string& reference : references) {
      const Words reference_words = number(reference);
      fewest = std::min(fewest, static_cast<double>(count_edits(words, reference_words)));
      lengths += static_cast<double>(reference_words.size());
    }
    return {fewest, lengths / static_cast<double>(references.size())};
  }

  double score(const Statistics& sums) const override { return compute<double>(sums); }
  double score_single(std::span<const float> sums) const override { return compute<float>(sums); }

 private:
  template <class Number>
  double compute(std::span<const Number> sums) const {
    const Number share = sums[1] > 0 ? sums[0] / sums[1] : static_cast<Number>(sums[0] > 0 ? 1 : 0);
    return 100 * share;
  }

  TerOptions options_;
};

}  // namespace

std::unique_ptr<Metric> make_ter(const TerOptions& options) { return std::make_unique<Ter>(options); }

}  // namespace calque
