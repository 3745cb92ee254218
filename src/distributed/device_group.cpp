#include "calque/distributed/device_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#ifdef CALQUE_NCCL
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "network.h"
#endif

namespace calque {

using torch::Tensor;

std::string device_of_process(const std::string& name, int local_rank, int device_count) {
  if (name == "cpu" || name.find(':') != std::string::npos || device_count < 2) return name;
  return fmt::format("{}:{}", name, local_rank % device_count);
}

struct DeviceGroup::Nccl {
  c10::intrusive_ptr<c10d::Backend> backend;
};

namespace {

#ifdef CALQUE_NCCL

// A store of its own, at the address of the group's: NCCL's threads use it at any time.
c10::intrusive_ptr<c10d::Store> connect_nccl_store(ProcessGroup& group) {
  const std::string& address = group.world().address;
  c10d::TCPStoreOptions options;
  options.waitWorkers = false;
  c10::intrusive_ptr<c10d::TCPStore> store;
  const std::string port = group.from_first([&] {
    options.isServer = true;
    options.masterListenFd = listen_at(address, 0).socket;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    getsockname(*options.masterListenFd, reinterpret_cast<sockaddr*>(&own), &size);
    options.port = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(own).sin_port);
    store = c10::make_intrusive<c10d::TCPStore>(address, options);
    return std::to_string(options.port);
  });
  if (store) return store;
  options.port = static_cast<uint16_t>(std::stoi(port));
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

c10::intrusive_ptr<c10d::Backend> make_nccl(ProcessGroup& group, const torch::Device& device) {
  if (group.is_alone() || !device.is_cuda()) return {};
  // Waiting then ends with an error when another process is gone, as it does with Gloo.
  setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(static_cast<int64_t>(group.timeout_seconds() * 1000));
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(connect_nccl_store(group), group.rank(), group.size(),
                                                     options);
}

#else

c10::intrusive_ptr<c10d::Backend> make_nccl(ProcessGroup&, const torch::Device&) { return {}; }

#endif

using NcclWork = c10::intrusive_ptr<c10d::Work>;

void wait_for(c10d::Work& work) {
  try {
    work.wait();
  } catch (const std::exception& error) {
    throw RankLost(fmt::format("NCCL: {}", error.what()));
  }
}

}  // namespace

DeviceGroup::DeviceGroup(ProcessGroup& group, const torch::Device& model_device) : group_(group) {
  const auto backend = make_nccl(group, model_device);
  if (!backend) return;
  nccl_ = std::make_unique<Nccl>(Nccl{backend});
  device_ = model_device;
}

DeviceGroup::~DeviceGroup() = default;

void DeviceGroup::Pending::wait() {
  if (by_nccl_) wait_for(**std::static_pointer_cast<NcclWork>(by_nccl_));
  by_nccl_.reset();
  by_gloo_.wait();
}

DeviceGroup::Pending DeviceGroup::start_sum(const Tensor& tensor) {
  Pending pending;
  std::vector<Tensor> tensors = {tensor};
  if (nccl_) {
    pending.by_nccl_ = std::make_shared<NcclWork>(nccl_->backend->allreduce(tensors));
  } else {
    pending.by_gloo_ = group_.start_sum(tensor);
  }
  return pending;
}

Tensor DeviceGroup::gather(const Tensor& own) {
  if (!nccl_) return group_.gather(own);
  Tensor all = torch::empty({group_.size(), own.numel()}, own.options()), input = own.contiguous();
  wait_for(*nccl_->backend->_allgather_base(all, input));
  return all;
}

void DeviceGroup::send(const Tensor& tensor, int to) {
  std::vector<Tensor> tensors = {tensor};
  nccl_ ? wait_for(*nccl_->backend->send(tensors, to, 0)) : group_.send(tensor, to);
}

void DeviceGroup::receive(const Tensor& tensor, int from) {
  std::vector<Tensor> tensors = {tensor};
  nccl_ ? wait_for(*nccl_->backend->recv(tensors, from, 0)) : group_.receive(tensor, from);
}

}  // namespace calque
