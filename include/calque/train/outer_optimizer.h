// OuterOptimizer: the step that brings the ranks together after local steps (DiLoCo; Douillard et al., 2023;
// with Muon inside, MuLoCo; Thérien et al., 2025). The mean change of the ranks' weights is taken as a
// gradient, with Nesterov momentum.
#pragma once

#include <vector>

#include "calque/checkpoint/safetensors.h"
#include "calque/distributed/device_group.h"
#include "calque/runs/distributed_config.h"
#include "calque/train/optimizer.h"

namespace calque {

class OuterOptimizer {
 public:
  // Keeps references to the group and to the parameters' tensors. A round starts from their present values.
  OuterOptimizer(const std::vector<TrainedParameter>& parameters, const DistributedConfig& config,
                 DeviceGroup& group);

  // Ends a round: afterwards all ranks have the same weights, from which the next round starts.
  void step();
  // A round starts from the present weights, which were restored from a checkpoint.
  void restart();

  // The momentum by name, as tensors that alias its own; the same on all ranks.
  const NamedTensors& state() const { return state_; }

 private:
  DistributedConfig config_;
  DeviceGroup& group_;
  std::vector<torch::Tensor> parameters_, starts_, momenta_;
  NamedTensors state_;
};

}  // namespace calque
