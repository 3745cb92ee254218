// Whether the ranks of a run are about to train the same thing, in the same way.
#pragma once

#include <string>

#include "calque/distributed/process_group.h"
#include "calque/runs/run_config.h"

namespace calque {

// What a rank found on its machine, by content: its paths may differ.
struct RankIdentity {
  std::string train_hash, valid_hash, base_hash;
  int threads = 1;
  bool bfloat16 = false;  // instructions: they round differently
};

// Throws a UserError with both values on every rank if one differs from rank 0 in its configuration. All
// ranks call it. (ProcessGroup compares the builds of calque.)
void check_settings_alike(ProcessGroup& group, const RunConfig& config);
// The same, and its data, and its number of threads where the result depends on it.
void check_ranks_alike(ProcessGroup& group, const RunConfig& config, const RankIdentity& identity);

}  // namespace calque
