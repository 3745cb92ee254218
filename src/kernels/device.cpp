#include "calque/kernels/device.h"

#include <ATen/DeviceAccelerator.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <optional>

#include "calque/base/error.h"

namespace calque {

torch::Device find_device(const std::string& name, const std::string& option) {
  if (name == "cpu") return torch::kCPU;
  if (name == "auto") {
    const auto kind = at::accelerator::getAccelerator();
    return kind && at::accelerator::deviceCount() > 0 ? torch::Device(*kind) : torch::Device(torch::kCPU);
  }
  std::optional<torch::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    throw UserError(fmt::format("{}={}: no such kind of device", option, name),
                    "auto, cpu, cuda, cuda:1 (the second GPU), xpu, mps, …");
  }
  try {
    if (torch::ones({1}, *device).add_(1).item<float>() == 2) return *device;
  } catch (const c10::Error&) {  // LibTorch's own text is about its dispatcher
  }
  throw UserError(
      fmt::format("{}={}: this LibTorch has no such device", option, name),
      fmt::format("{}=cpu runs everywhere; docs/devices.md says what other devices need", option));
}

// Reading a value back waits for all operations before it, on every device.
void wait_for(const torch::Device& device) {
  if (!device.is_cpu()) torch::zeros({1}, device).item<float>();
}

}  // namespace calque
