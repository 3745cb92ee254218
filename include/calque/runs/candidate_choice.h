// CandidateChoice: which of a teacher's translations a student should learn. Of those without an obvious
// fault it takes the one nearest to the reference: sequence-level interpolation (Kim and Rush, 2016).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/field.h"
#include "calque/metrics/metric.h"

namespace calque {

enum class ChooseBy { bleu, chrf, first };
template <>
struct EnumNames<ChooseBy> {
  static constexpr std::string_view names[] = {"bleu", "chrf", "first"};
};

enum class Fault { none, empty, copied, looped, wrong_length };
template <>
struct EnumNames<Fault> {
  static constexpr std::string_view names[] = {"none", "empty", "copied", "looped", "wrong_length"};
};

// What a person would reject without knowing French: nothing, the source itself, words that go round in
// circles, or far more or less text than the reference. What the reference does too is no fault.
Fault find_fault(const std::string& source, const std::string& reference, const std::string& candidate);

struct Choice {
  Fault fault = Fault::none;  // of the first candidate, if all have one
  std::string text;
};

class CandidateChoice {
 public:
  explicit CandidateChoice(ChooseBy by);

  // `candidates`: the teacher's best first.
  Choice choose(const std::string& source, const std::string& reference,
                const std::vector<std::string>& candidates) const;

 private:
  std::unique_ptr<Metric> metric_;  // none: the teacher's order counts
};

}  // namespace calque
