// What runs where: the fast kernels take float32 on the CPU. Everything else (another device, another type)
// takes the portable versions: a fixed number of ATen operations for any number of pairs.
#pragma once

namespace calque {

// While one is alive, float32 on the CPU takes the portable versions too, in all threads: what a user of
// another device gets can be tested here.
class PortableKernels {
 public:
  explicit PortableKernels(bool force = true);  // false: changes nothing
  ~PortableKernels();
  PortableKernels(const PortableKernels&) = delete;
  PortableKernels& operator=(const PortableKernels&) = delete;

 private:
  bool before_;
};

}  // namespace calque
