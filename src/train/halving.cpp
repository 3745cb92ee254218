#include "calque/train/halving.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/base/units.h"

namespace calque {

std::vector<Rung> plan_halving(int64_t trials, double total, BudgetUnit unit) {
  std::vector<Rung> rungs;
  double budget = 1, units = 0;  // in units of the first rung's budget
  for (int64_t left = trials; rungs.empty() || left > 1; left = (left + 1) / 2) {
    units += static_cast<double>(left) * (rungs.empty() ? 1 : budget / 2);
    rungs.push_back({left, budget});
    budget *= 2;
  }
  const double first = unit == BudgetUnit::steps ? std::floor(total / units) : total / units;
  if (first < 1) {
    throw UserError(fmt::format("{} over {} trials leave less than {} for each", budget_text(total, unit),
                                trials, budget_text(1, unit)),
                    fmt::format("allow at least {}, or fewer trials", budget_text(units, unit)));
  }
  for (Rung& rung : rungs) rung.budget *= first;
  return rungs;
}

std::string budget_text(double budget, BudgetUnit unit) {
  if (unit == BudgetUnit::seconds) return format_seconds(budget);
  return format_count(std::llround(budget)) + (budget == 1 ? " step" : " steps");
}

std::string plan_text(const std::vector<Rung>& rungs, BudgetUnit unit) {
  std::vector<std::string> parts;
  for (const Rung& rung : rungs)
    parts.push_back(fmt::format("{} × {}", rung.trials, budget_text(rung.budget, unit)));
  return join(parts, ", ");
}

}  // namespace calque
