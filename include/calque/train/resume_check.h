// Whether a run may continue with a changed configuration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calque/runs/run_config.h"

namespace calque {

struct ConfigChange {
  std::string key, before, now;
};

// The full name and the value of every key, in the order of the listing.
std::vector<std::pair<std::string, std::string>> config_values(RunConfig config);

// All keys whose values differ, in the order of the listing.
std::vector<ConfigChange> changed_keys(const RunConfig& before, const RunConfig& now);

bool has_change(const std::vector<ConfigChange>& changes, const std::string& key);

// Settings that affect tensor shapes, the data order or the meaning of the weights must match on resume: the
// first that does not is a UserError with both values.
void check_resumable(const std::vector<ConfigChange>& changes);

}  // namespace calque
