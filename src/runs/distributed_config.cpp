#include "calque/runs/distributed_config.h"

namespace calque {

Fields fields(DistributedConfig& c) {
  return {
      field("local_steps", c.local_steps, at_least(1),
            "steps that each process makes by itself before the weights are averaged (DiLoCo), for slow "
            "networks; 1: gradients are summed in every step"),
      field(
          "outer_learning_rate", c.outer_learning_rate, above(0.0),
          "with local_steps: the learning rate of the step along the averaged change; 1: the average itself"),
      field("outer_momentum", c.outer_momentum, from_below(0.0, 1.0),
            "with local_steps: its Nesterov momentum; DiLoCo has 0.9, with a learning rate of 0.7"),
      field("compress", c.compress, "bfloat16: send gradients, or averaged changes, in half the bytes"),
      field("timeout_seconds", c.timeout_seconds, at_least(2.0),
            "a process that does not answer for so long ends the run on all of them"),
  };
}

}  // namespace calque
