// Optimizer: AdamW (Loshchilov and Hutter, 2019) by LibTorch's fused kernel, or Muon (Jordan et al., 2024)
// for the matrices inside blocks with AdamW for the rest. Its state can be saved and put back bit for bit.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "calque/convert/safetensors.h"
#include "calque/model/decoder.h"
#include "calque/train/train_config.h"

namespace calque {

class Optimizer {
 public:
  // `rate_share`: the learning rate of a parameter, by its name, as a share of the one given to step().
  // Parameters without gradient are left out.
  using RateShare = std::function<double(const std::string& name)>;
  Optimizer(const Decoder& decoder, const TrainConfig& config, const RateShare& rate_share = {});

  // One update with the gradients that the parameters hold.
  void step(double learning_rate);

  // State by name, as tensors that alias the optimizer's own: to be copied from, or into.
  NamedTensors state() const;

 private:
  struct AdamGroup {
    double weight_decay;
    double rate_share;
    std::vector<torch::Tensor> parameters, means, squares, steps;
  };
  struct MuonMatrix {
    torch::Tensor parameter;
    torch::Tensor momentum;
    double rate_share;
    std::vector<int64_t>
        part_rows;  // a matrix that holds several, one above the other, is updated as several
  };
  void step_muon(double learning_rate);
  void add_to_adam(const std::string& name, const torch::Tensor& parameter, double rate_share);

  TrainConfig config_;
  std::vector<AdamGroup> groups_;
  std::vector<MuonMatrix> matrices_;
  NamedTensors state_;
};

// The orthogonal matrix nearest to each, approximately, by five Newton-Schulz steps. matrices: [count, rows,
// columns], rows ≤ columns.
torch::Tensor orthogonalise(const torch::Tensor& matrices);

}  // namespace calque
