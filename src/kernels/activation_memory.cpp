#include "activation_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/alignment.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace calque {
namespace {

constexpr size_t most_kept_bytes = 32 << 20;  // mutate: memory only; per thread
constexpr size_t header_bytes = 64;           // before each block: its size class; keeps the alignment
constexpr int smallest_bits = 10;             // mutate: memory only; blocks have at least 1 kB
constexpr size_t classes = 64;                // mutate: memory only

// Sizes are rounded up to 4/4, 5/4, 6/4 or 7/4 of a power of two.
struct SizeClass {
  size_t index, bytes;
};

SizeClass size_class(size_t bytes) {
  const size_t wanted = std::max(bytes, size_t{1} << smallest_bits) - 1;
  const int shift = static_cast<int>(std::bit_width(wanted)) - 3;
  const size_t quarters = (wanted >> shift) + 1;  // 5 … 8
  return {static_cast<size_t>(shift) * 4 + quarters - 5, quarters << shift};
}

thread_local bool is_thread_ending = false;

struct FreeBlocks {
  std::array<std::vector<void*>, 4 * classes> by_class;
  size_t bytes = 0;

  ~FreeBlocks() {
    is_thread_ending = true;
    for (const auto& blocks : by_class)
      for (void* block : blocks) std::free(block);  // mutate: memory only
  }
};

FreeBlocks& free_blocks() {
  thread_local FreeBlocks blocks;
  return blocks;
}

void release(void* data) {
  void* block = static_cast<char*>(data) - header_bytes;
  SizeClass kind{};
  std::memcpy(&kind, block, sizeof kind);
  if (is_thread_ending || free_blocks().bytes + kind.bytes > most_kept_bytes) return std::free(block);
  free_blocks().bytes += kind.bytes;
  free_blocks().by_class[kind.index].push_back(block);
}

class ActivationAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const SizeClass kind = size_class(bytes);
    void* block = is_thread_ending ? nullptr : take(kind);
    if (block == nullptr) block = std::aligned_alloc(header_bytes, header_bytes + kind.bytes);
    if (block == nullptr) throw std::bad_alloc();
    std::memcpy(block, &kind, sizeof kind);
    void* data = static_cast<char*>(block) + header_bytes;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

 private:
  static void* take(const SizeClass& kind) {
    auto& blocks = free_blocks().by_class[kind.index];
    if (blocks.empty()) return nullptr;
    void* block = blocks.back();
    blocks.pop_back();
    free_blocks().bytes -= kind.bytes;
    return block;
  }
};

}  // namespace

torch::Tensor empty_activation(at::IntArrayRef sizes) {
  static ActivationAllocator allocator;
  return at::detail::empty_generic(sizes, &allocator, c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   torch::kFloat32, std::nullopt);
}

}  // namespace calque
