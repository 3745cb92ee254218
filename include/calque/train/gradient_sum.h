// GradientSum: adds up the gradients of all ranks, in buckets, while the backward pass still computes the
// rest.
#pragma once

#include <vector>

#include "calque/distributed/device_group.h"
#include "calque/runs/distributed_config.h"
#include "calque/train/optimizer.h"

namespace calque {

class GradientSum {
 public:
  // Keeps references to the group and to the parameters' tensors. `parameters`: in the order of the forward
  // pass, as trained_parameters() has them. Buckets have at least `bucket_elements`; 0: as fits the group.
  GradientSum(const std::vector<TrainedParameter>& parameters, Compression compression, DeviceGroup& group,
              int64_t bucket_elements = 0);
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // Before the last backward pass of a step: each bucket is sent as soon as its gradients are complete.
  void start();
  // Afterwards the parameters' gradients are the sums over all ranks, the same bits on each. A rank that made
  // no backward pass contributes zeros.
  void finish();

  size_t bucket_count() const { return buckets_.size(); }
  size_t sent_count() const { return sent_; }  // buckets, since start()

 private:
  struct Hook;
  struct Bucket {
    std::vector<torch::Tensor> parameters;
    size_t missing = 0;    // gradients that are not complete yet
    torch::Tensor values;  // [elements], once it is sent
    DeviceGroup::Pending pending;
  };
  void note_complete(size_t bucket);
  void send(Bucket& bucket);

  DeviceGroup& group_;
  torch::Dtype type_;            // that gradients are sent in
  std::vector<Bucket> buckets_;  // in the order in which the backward pass completes them
  size_t sent_ = 0;              // buckets; all ranks send them in this order
  bool started_ = false;
};

}  // namespace calque
