#include "calque/runs/candidate_choice.h"

#include <algorithm>

#include "calque/base/unicode.h"
#include "calque/metrics/bleu.h"
#include "calque/metrics/chrf.h"

namespace calque {
namespace {

constexpr size_t longest_phrase = 4;  // words of a phrase that may be repeated in a loop

// How often a phrase is said in a row, at most.
size_t most_repeats(const std::vector<std::u32string>& words) {
  size_t most = words.empty() ? 0 : 1;
  for (size_t length = 1; length <= longest_phrase; ++length) {
    size_t same = 0;  // words that equal the one a phrase before them
    for (size_t i = length; i < words.size(); ++i) {
      same = words[i] == words[i - length] ? same + 1 : 0;
      most = std::max(most, same / length + 1);
    }
  }
  return most;
}

bool is_looped(const std::u32string& reference, const std::u32string& candidate) {
  constexpr size_t tolerated = 3;  // "no, no, no"
  return most_repeats(split_words(candidate)) > std::max(tolerated, most_repeats(split_words(reference)));
}

bool has_wrong_length(size_t reference, size_t candidate) {
  constexpr size_t slack = 10;  // characters; "Oui." may be "Yes, I do."
  return candidate > 2 * reference + slack || reference > 2 * candidate + slack;
}

}  // namespace

Fault find_fault(const std::string& source, const std::string& reference, const std::string& candidate) {
  if (candidate.empty()) return Fault::empty;
  const std::string low_source = lower_case(source);
  if (lower_case(candidate) == low_source && lower_case(reference) != low_source) return Fault::copied;
  const std::u32string wanted = code_points(reference), found = code_points(candidate);
  if (is_looped(wanted, found)) return Fault::looped;
  return has_wrong_length(wanted.size(), found.size()) ? Fault::wrong_length : Fault::none;
}

CandidateChoice::CandidateChoice(ChooseBy by) {
  BleuOptions bleu;
  bleu.effective_order = true;  // of single sentences
  if (by == ChooseBy::bleu) metric_ = make_bleu(bleu);
  if (by == ChooseBy::chrf) metric_ = make_chrf({});
}

Choice CandidateChoice::choose(const std::string& source, const std::string& reference,
                               const std::vector<std::string>& candidates) const {
  Choice choice{candidates.empty() ? Fault::empty : find_fault(source, reference, candidates.front()),
                candidates.empty() ? "" : candidates.front()};
  double best = -1;
  for (const std::string& candidate : candidates) {
    if (find_fault(source, reference, candidate) != Fault::none) continue;
    const double score = metric_ ? metric_->score(metric_->count(candidate, std::span(&reference, 1))) : 0;
    if (score <= best) continue;
    best = score;
    choice = {Fault::none, candidate};
  }
  return choice;
}

}  // namespace calque
