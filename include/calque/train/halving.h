// Halving: the plan of a search by successive halving (Jamieson and Talwalkar, 2016). All trials train for
// the same short time; the better half goes on to twice that time, and so on, until the last two are
// compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace calque {

// What trials are given equal amounts of: seconds of training, or steps.
enum class BudgetUnit { seconds, steps };

struct Rung {
  int64_t trials;
  double budget;  // of each trial, from its beginning to the end of this rung

  bool operator==(const Rung&) const = default;
};

// The rungs for `total` seconds or steps over all trials. Budgets in steps are whole. Too little for so many
// trials is a UserError.
std::vector<Rung> plan_halving(int64_t trials, double total, BudgetUnit unit);

// For people: "16 × 15 s, 8 × 30 s, 4 × 1 min 00 s".
std::string plan_text(const std::vector<Rung>& rungs, BudgetUnit unit);
std::string budget_text(double budget, BudgetUnit unit);

}  // namespace calque
