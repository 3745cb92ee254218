#include "calque/train/gradient_sum.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace calque {

using torch::Tensor;

namespace {

// In the order in which the backward pass completes their gradients: first an output of its own, which the
// loss multiplies with, last the embedding. The order is fixed, not observed, so that a resumed run adds up
// in the order of the run before it.
std::vector<Tensor> in_backward_order(const std::vector<TrainedParameter>& parameters) {
  std::vector<Tensor> output, rest, embedding;
  for (auto one = parameters.rbegin(); one != parameters.rend(); ++one) {
    auto& group = one->name == "output" ? output : one->name.starts_with("embedding.") ? embedding : rest;
    group.push_back(one->tensor);
  }
  std::vector<Tensor> all;
  for (const auto* group : {&output, &rest, &embedding}) all.insert(all.end(), group->begin(), group->end());
  return all;
}

}  // namespace

struct GradientSum::Hook : torch::autograd::PostAccumulateGradHook {
  Hook(GradientSum& to_tell, size_t bucket_index) : sum(to_tell), bucket(bucket_index) {}
  void operator()(const Tensor&) override { sum.note_complete(bucket); }

  GradientSum& sum;
  size_t bucket;
};

GradientSum::GradientSum(const std::vector<TrainedParameter>& parameters, Compression compression,
                         DeviceGroup& group, int64_t bucket_elements)
    : group_(group), type_(compression == Compression::bfloat16 ? torch::kBFloat16 : torch::kFloat32) {
  if (bucket_elements == 0) bucket_elements = elements_per_message(group.group().size());
  int64_t elements = bucket_elements;
  for (const Tensor& parameter : in_backward_order(parameters)) {
    if (elements >= bucket_elements) {
      buckets_.emplace_back();
      elements = 0;
    }
    buckets_.back().parameters.push_back(parameter);
    elements += parameter.numel();
    torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                   std::make_unique<Hook>(*this, buckets_.size() - 1));
  }
}

GradientSum::~GradientSum() {
  for (const Bucket& bucket : buckets_) {
    for (const Tensor& parameter : bucket.parameters)
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void GradientSum::start() {
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
  sent_ = 0;
  started_ = true;
}

void GradientSum::note_complete(size_t index) {
  if (!started_) return;
  Bucket& bucket = buckets_[index];
  if (bucket.missing == 0) throw std::logic_error("a gradient changed after it was sent");
  --bucket.missing;
  while (sent_ < buckets_.size() && buckets_[sent_].missing == 0) send(buckets_[sent_++]);
}

void GradientSum::send(Bucket& bucket) {
  RECORD_USER_SCOPE("communication");
  const torch::NoGradGuard no_gradients;
  std::vector<Tensor> parts;
  for (const Tensor& parameter : bucket.parameters) {
    const Tensor gradient = parameter.grad();
    parts.push_back(gradient.defined() ? gradient.flatten()
                                       : torch::zeros({parameter.numel()}, parameter.options()));
  }
  bucket.values = torch::cat(parts).to(group_.device(), type_);
  bucket.pending = group_.start_sum(bucket.values);
}

void GradientSum::finish() {
  RECORD_USER_SCOPE("communication");
  if (!started_) start();
  while (sent_ < buckets_.size()) send(buckets_[sent_++]);
  for (Bucket& bucket : buckets_) {
    bucket.pending.wait();
    const Tensor sums = bucket.values.to(bucket.parameters.front().device(), torch::kFloat32);
    int64_t at = 0;
    for (Tensor& parameter : bucket.parameters) {
      parameter.mutable_grad() = sums.slice(0, at, at + parameter.numel()).view_as(parameter);
      at += parameter.numel();
    }
    bucket.values = Tensor();
  }
  started_ = false;
}

}  // namespace calque
