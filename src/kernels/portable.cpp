#include "calque/kernels/portable.h"

#include <atomic>

#include "fast.h"

namespace calque {
namespace {

std::atomic<bool> is_forced = false;

}  // namespace

bool are_portable_kernels_forced() { return is_forced.load(std::memory_order_relaxed); }

PortableKernels::PortableKernels(bool force) : before_(is_forced.exchange(force || is_forced)) {}
PortableKernels::~PortableKernels() { is_forced = before_; }

}  // namespace calque
