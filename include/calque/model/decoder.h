// Decoder: the whole model, from token ids to logits or loss, on a flat batch. The same forward pass trains
// and translates; the last block and the output matrix run on the queries' rows alone.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "calque/kernels/linear_cross_entropy.h"
#include "calque/kernels/weight_precision.h"
#include "calque/model/block.h"
#include "calque/model/embedding.h"
#include "calque/model/model_config.h"

namespace calque {

class Decoder : public torch::nn::Module {
 public:
  // The weights are uninitialised until initialise() or a checkpoint fills them.
  explicit Decoder(const ModelConfig& config);

  // tokens: [rows] int64. The normalised output of the last block: [queries, hidden_size].
  torch::Tensor hidden(const torch::Tensor& tokens, const Layout& layout, const Hook* hook = nullptr) const;
  torch::Tensor logits(const torch::Tensor& tokens, const Layout& layout,
                       const Hook* hook = nullptr) const;  // [queries, vocabulary]
  // The same for rows that continue earlier passes, whose keys and values are in the cache. With packed
  // weights the bits of a pair's logits do not depend on the pairs beside it.
  torch::Tensor logits(const torch::Tensor& tokens, const Layout& layout, const CacheView& cache,
                       const Hook* hook = nullptr) const;
  // labels: [queries] int64. Summed over the labels.
  CrossEntropyLoss loss(const torch::Tensor& tokens, const Layout& layout, const torch::Tensor& labels,
                        double smoothing) const;

  // log p of each label given its query: [queries]. Holds the logits of a few rows at a time.
  torch::Tensor label_scores(const torch::Tensor& tokens, const Layout& layout, const torch::Tensor& labels,
                             const Hook* hook = nullptr) const;

  // Draws all weights from `seed`: normal with standard deviation 0.02; what is added to the residual stream
  // is scaled down by √(2 · layers), so that the stream does not grow with depth (Radford et al., 2019).
  void initialise(uint64_t seed);

  // Stores the matrices for translating: packed, adapters merged, without gradients from here on. On the CPU.
  void pack(WeightPrecision precision);

  // Uses the packed weights of `base`, of the same shapes, instead of its own: one copy in memory serves
  // both.
  void share_packed(const Decoder& base);

  std::optional<WeightPrecision> packed_precision() const { return packed_precision_; }
  WeightPrecision weight_precision() const;  // how the matrices are stored, packed or not

  const ModelConfig& config() const { return config_; }
  const torch::Tensor& output_weight() const {
    return output.defined() ? output : embedding->weight;
  }  // [vocabulary, hidden_size]; undefined once packed, as the parameters are
  const RopeTable* layer_rope(int64_t layer) const;  // null for models without RoPE
  torch::Device device() const { return norm->weight.device(); }
  int64_t parameter_count() const;

  // Rounds the operands of all matrix products of unpacked weights to this type.
  void use_products(torch::Dtype type);

  // Stores the matrices for translating on another device than the CPU, where weights are not packed: in
  // `type`, without gradients from here on.
  void store_weights(torch::Dtype type);

  std::shared_ptr<Embedding> embedding;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<Norm> norm;
  torch::Tensor output;  // [vocabulary, hidden_size]; undefined where tied to the embedding
  torch::Tensor
      embedding_shortcut;  // [layers] weights of the embeddings in each block's input; undefined: none
  // Keep only the input of each block, and compute the rest again in the backward pass.
  bool gradient_checkpointing = false;

 private:
  RopeTable add_rope_table(const std::string& name, double theta);
  torch::Tensor run(const torch::Tensor& tokens, const ForwardContext& context) const;
  torch::Tensor project(const torch::Tensor& hidden) const;

  ModelConfig config_;
  torch::Dtype products_ = torch::kFloat32;
  std::shared_ptr<const PackedMatrix> packed_output_;
  std::optional<WeightPrecision> packed_precision_;
  RopeTable rope_, local_rope_;  // of full_attention and sliding_attention layers; undefined where not needed
};

// A copy for translating; `decoder` stays as it is. Weights that need no other form are shared with it.
std::shared_ptr<Decoder> packed_copy(const Decoder& decoder, WeightPrecision precision);

}  // namespace calque
