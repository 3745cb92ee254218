// Counts the operations that LibTorch is asked for, which is what a device's time goes into where they are
// small.
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace calque {

inline int64_t count_operations(const std::function<void()>& work) {
  static std::atomic<int64_t> count;
  count = 0;
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        ++count;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return count;
}

}  // namespace calque
