// DeviceGroup: the operations that carry gradients and weights, on tensors where the model is: by NCCL
// between NVIDIA's GPUs, if LibTorch was built with it and its headers were found, else by Gloo on copies in
// the CPU's memory. Never tried on a GPU: none was at hand.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>

#include "calque/distributed/process_group.h"

namespace calque {

// "cuda" and the like are one GPU per process of a machine: "cuda:1" for the second of them. Names with an
// index, and the CPU, stay as they are.
std::string device_of_process(const std::string& name, int local_rank, int device_count);

class DeviceGroup {
 public:
  // All ranks call it. Keeps a reference to the group.
  DeviceGroup(ProcessGroup& group, const torch::Device& model_device);
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  ProcessGroup& group() const { return group_; }
  // Where the tensors must be that are given to the operations: they are as those of ProcessGroup.
  const torch::Device& device() const { return device_; }

  class Pending {
   public:
    void wait();

   private:
    friend class DeviceGroup;
    ProcessGroup::Pending by_gloo_;
    std::shared_ptr<void> by_nccl_;
  };
  Pending start_sum(const torch::Tensor& tensor);  // in place
  torch::Tensor gather(const torch::Tensor& own);
  void send(const torch::Tensor& tensor, int to);
  void receive(const torch::Tensor& tensor, int from);

 private:
  struct Nccl;

  ProcessGroup& group_;
  torch::Device device_ = torch::kCPU;
  std::unique_ptr<Nccl> nccl_;  // none: Gloo
};

}  // namespace calque
