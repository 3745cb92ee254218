// Decoder: the whole model, from token ids to logits or loss, on a flat batch. It computes only what is asked
// for: the last block and the output run on the rows that carry loss.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "calque/kernels/output_loss.h"
#include "calque/model/block.h"
#include "calque/model/embedding.h"
#include "calque/model/model_config.h"

namespace calque {

class Decoder : public torch::nn::Module {
 public:
  // The weights are drawn by initialise().
  explicit Decoder(const ModelConfig& config);

  // tokens: [rows] int64. The last block's output for the rows that the layout asks for, normed: [queries,
  // width].
  torch::Tensor hidden(const torch::Tensor& tokens, const Layout& layout, const Tap* tap = nullptr) const;
  torch::Tensor logits(const torch::Tensor& tokens, const Layout& layout,
                       const Tap* tap = nullptr) const;  // [queries, vocabulary]
  // The same for rows that go on from earlier passes, whose keys and values the cache has.
  torch::Tensor logits(const torch::Tensor& tokens, const Layout& layout, const CachePass& cache) const;
  // labels: [queries] int64. Sums over them.
  OutputLoss loss(const torch::Tensor& tokens, const Layout& layout, const torch::Tensor& labels,
                  double smoothing) const;

  // Draws all weights anew from `seed`: normal, standard deviation 0.02, what is added to the residual scaled
  // down by √(2 · layers) so that its size does not grow with depth (Radford et al., 2019).
  void initialise(uint64_t seed);

  const ModelConfig& config() const { return config_; }
  const torch::Tensor& output_weight() const {
    return output.defined() ? output : embedding->weight;
  }                                                         // [vocabulary, width]
  const RotaryTable* rotary_of_layer(int64_t layer) const;  // null where positions are not rotary
  int64_t parameter_count() const;

  std::shared_ptr<Embedding> embedding;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<Norm> norm;
  torch::Tensor output;  // [vocabulary, width]; undefined where tied to the embedding
  // Keep only what goes into each block, and compute its inside again in the backward pass.
  bool recompute = false;
  // Round what is multiplied in blocks and output to bfloat16, while training.
  void use_half_products();

 private:
  RotaryTable add_rotary_table(const std::string& name, double base);
  torch::Tensor run(const torch::Tensor& tokens, const Pass& pass) const;

  ModelConfig config_;
  bool half_products_ = false;
  RotaryTable rotary_, window_rotary_;  // of layers without and with a window; undefined where not needed
};

}  // namespace calque
