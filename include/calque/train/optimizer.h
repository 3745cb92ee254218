// Optimizer: AdamW (Loshchilov and Hutter, 2019) by LibTorch's fused kernel, or Muon (Jordan et al., 2024)
// for the matrices inside blocks with AdamW for the rest. Its state can be saved and put back bit for bit.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "calque/convert/safetensors.h"
#include "calque/model/decoder.h"
#include "calque/train/train_config.h"

namespace calque {

class Optimizer {
 public:
  Optimizer(const Decoder& decoder, const TrainConfig& config);

  // One update with the gradients that the parameters hold.
  void step(double learning_rate);

  // State by name, as tensors that alias the optimizer's own: to be copied from, or into.
  NamedTensors state() const;

 private:
  struct AdamGroup {
    double weight_decay;
    std::vector<torch::Tensor> parameters, means, squares, steps;
  };
  struct MuonMatrix {
    torch::Tensor parameter;
    torch::Tensor momentum;
    std::vector<int64_t>
        part_rows;  // a matrix that holds several, one above the other, is updated as several
  };
  void step_muon(double learning_rate);
  void add_to_adam(const std::string& name, const torch::Tensor& parameter);

  TrainConfig config_;
  AdamGroup decayed_, undecayed_;
  std::vector<MuonMatrix> matrices_;
  NamedTensors state_;
};

// The orthogonal matrix nearest to the update, approximately, by five Newton-Schulz steps. matrix: [rows,
// columns].
torch::Tensor orthogonalise(const torch::Tensor& matrix);

}  // namespace calque
