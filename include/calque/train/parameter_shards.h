// ParameterShards: which rank updates which parameters (ZeRO stage 1; Rajbhandari et al., 2020). The
// optimizer's memory and work are divided by the number of ranks; the weights are the same on all of them.
#pragma once

#include <optional>
#include <vector>

#include "calque/distributed/device_group.h"
#include "calque/runs/train_config.h"
#include "calque/train/optimizer.h"
#include "calque/train/parameter_division.h"
#include "calque/train/share_exchange.h"

namespace calque {

class ParameterShards {
 public:
  // Keeps a reference to the group. Undivided, every rank updates all.
  ParameterShards(const std::vector<TrainedParameter>& parameters, OptimizerKind optimizer,
                  DeviceGroup& group, bool divided = true);

  // Views of the parameters, or of some rows of them.
  const std::vector<TrainedParameter>& own() const { return own_; }
  // Before own() is updated: gives it the gradients that the parameters have, or none.
  void take_gradients();
  // After each rank has updated its own: copies the updated parameters to all ranks.
  void exchange() const;

 private:
  std::vector<TrainedParameter> parameters_, own_;
  std::vector<ParameterSlice> own_slices_;
  std::optional<ShareExchange> exchange_;  // if they are divided
};

}  // namespace calque
