// A device that is not the CPU, for machines without any: LibTorch's type "hpu", whose operations run on the
// CPU with copies there and back. Its memory has addresses that the CPU cannot read, so that code which takes
// it for the CPU's own crashes, as it would with a GPU; and operations on tensors of both devices are
// refused.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/detail/HPUHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/types.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace calque {
namespace fake_device {

inline const torch::Device device{torch::kHPU, 0};

constexpr uintptr_t unreadable = uintptr_t{1} << 60;

inline void* flip(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) ^ unreadable);
}

inline void release(void* context) { std::free(context); }

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = std::malloc(bytes + 1);
    return {flip(memory), memory, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(flip(to), flip(from), bytes);
  }
};

inline Allocator& allocator() {
  static Allocator one;
  return one;
}

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::HPU> {
  torch::Device exchangeDevice(torch::Device) const override { return device; }
  torch::Device getDevice() const override { return device; }
  c10::Stream getStream(torch::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
};

inline torch::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                           std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                           std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator(), c10::DispatchKeySet(c10::DispatchKey::HPU),
                                   type.value_or(torch::kFloat32), format);
}

inline torch::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                                   std::optional<at::ScalarType> type, std::optional<at::Layout>,
                                   std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      size, stride, &allocator(), c10::DispatchKeySet(c10::DispatchKey::HPU), type.value_or(torch::kFloat32));
}

// The same memory as a tensor of the CPU.
inline torch::Tensor readable(const torch::Tensor& x) {
  if (x.is_cpu()) return x;
  return at::from_blob(flip(x.unsafeGetTensorImpl()->data()), x.sizes(), x.strides(),
                       at::TensorOptions(x.scalar_type()));
}

inline torch::Tensor copy_from(const torch::Tensor& from, const torch::Tensor& to, bool) {
  readable(to).copy_(readable(from));
  return to;
}

inline torch::Tensor copy_from_and_resize(const torch::Tensor& from, const torch::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    const size_t bytes = from.nbytes();
    to.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(allocator().allocate(bytes));
    to.storage().unsafeGetStorageImpl()->set_nbytes(bytes);
    to.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return copy_from(from, to, false);
}

inline void fall_back(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

inline bool is_present = false;

struct Hooks final : at::HPUHooksInterface {
  bool isBuilt() const override { return is_present; }
  bool isAvailable() const override { return is_present; }
  bool hasHPU() const override { return is_present; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

// Before LibTorch looks for devices, which it does once: at the first backward pass, for example.
inline const bool is_registered = [] {
  c10::SetAllocator(c10::DeviceType::HPU, &allocator());
  static const c10::impl::DeviceGuardImplRegistrar guard(c10::DeviceType::HPU, new Guard());
  at::HPUHooksRegistry()->Register("HPUHooks", [](at::HPUHooksArgs) { return std::make_unique<Hooks>(); });
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::HPU, __FILE__, __LINE__);
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  static torch::Library others(torch::Library::IMPL, "_", c10::DispatchKey::HPU, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
  return true;
}();

}  // namespace fake_device

// The device exists while one of these does; otherwise "auto" would find it in other tests.
struct FakeDevice {
  FakeDevice() { fake_device::is_present = true; }
  ~FakeDevice() { fake_device::is_present = false; }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  const torch::Device device = fake_device::device;
};

}  // namespace calque
