// ParameterShards: which rank updates which parameters (ZeRO stage 1; Rajbhandari et al., 2020). The
// optimizer's memory and work are divided by the number of ranks; the weights are the same on all of them.
#pragma once

#include <vector>

#include "calque/checkpoint/safetensors.h"
#include "calque/distributed/process_group.h"
#include "calque/runs/train_config.h"
#include "calque/train/optimizer.h"

namespace calque {

class ParameterShards {
 public:
  // Keeps a reference to the group. The shares have about equal work. Undivided, every rank updates all.
  ParameterShards(std::vector<TrainedParameter> parameters, OptimizerKind optimizer, ProcessGroup& group,
                  bool divided = true);

  const std::vector<TrainedParameter>& own() const { return by_rank_[own_]; }
  // After each rank has updated its own: copies the updated parameters to all ranks.
  void exchange() const;

 private:
  ProcessGroup& group_;
  std::vector<std::vector<TrainedParameter>> by_rank_;  // one entry if it is not divided
  size_t own_ = 0;
};

// Every rank's tensors, sorted by name, on rank 0; nothing on the others.
NamedTensors collect_tensors(ProcessGroup& group, const NamedTensors& own);
// The opposite: fills each rank's tensors, by name, with what `read` returns on rank 0.
void distribute_tensors(ProcessGroup& group, const NamedTensors& own,
                        const std::function<torch::Tensor(const std::string& name)>& read);

}  // namespace calque
