// The devices that LibTorch has on this machine, by name.
#pragma once

#include <torch/types.h>

#include <string>

namespace calque {

// "cpu", "cuda", "cuda:1", "mps", …; "auto": the accelerator where there is one, else the CPU. A name that
// LibTorch does not know, or a device that it cannot use here, is a UserError that names `option`, where it
// was given.
torch::Device find_device(const std::string& name, const std::string& option);

// Waits until a device has done all that was asked of it, before a clock is read.
void wait_for(const torch::Device& device);

}  // namespace calque
