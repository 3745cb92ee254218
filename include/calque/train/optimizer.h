// Optimizer: AdamW (Loshchilov and Hutter, 2019) by LibTorch's fused kernel, or Muon (Jordan et al., 2024)
// for the matrices inside blocks with AdamW for all other parameters. Its state is saved and restored bit for
// bit.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "calque/checkpoint/safetensors.h"
#include "calque/runs/train_config.h"

namespace calque {

struct TrainedParameter {
  std::string name;
  torch::Tensor tensor;
  double lr_scale = 1;                  // its learning rate, as a fraction of the one given to step()
  std::vector<int64_t> part_rows = {};  // of a matrix inside a block: the rows of each part fused into it
};

class Optimizer {
 public:
  Optimizer(const std::vector<TrainedParameter>& parameters, const TrainConfig& config);

  // One update with the gradients that the parameters hold.
  void step(double learning_rate);

  // The state by name, as tensors that alias the optimizer's own, to copy from or into.
  const NamedTensors& state() const { return state_; }

  // Views of one of the matrices that are fused into a parameter, which Muon updates on its own.
  struct MuonPart {
    torch::Tensor parameter, momentum, gradient;  // [rows, columns]
    double rate;
  };

 private:
  struct AdamGroup {
    double weight_decay;
    double lr_scale;
    std::vector<torch::Tensor> parameters, means, squares, steps;
  };
  struct MuonMatrix {
    torch::Tensor parameter;
    torch::Tensor momentum;
    double lr_scale;
    std::vector<int64_t> part_rows;  // each part is orthogonalised on its own
  };
  void step_adam(AdamGroup& group, double learning_rate);
  void step_muon(double learning_rate);
  void update_together(const std::vector<MuonPart>& parts) const;
  void add_to_adam(const TrainedParameter& parameter);

  TrainConfig config_;
  std::vector<AdamGroup> groups_;
  std::vector<MuonMatrix> matrices_;
  NamedTensors state_;
};

}  // namespace calque
