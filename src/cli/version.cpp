// calque --version: ours, the libraries', and what this machine can do.
#include <ATen/Version.h>
#include <torch/version.h>

#include <fmt/format.h>

#include <thread>

#include "calque/cli/command.h"

namespace calque::cli {

std::string version_text() {
  const bool bf16 = __builtin_cpu_supports("avx512bf16") != 0;
  return fmt::format(
      "calque {}\nLibTorch {}\nSentencePiece {}\nCPU: {} for matrix products, {} cores\n"
      "bfloat16: {}",
      CALQUE_VERSION, TORCH_VERSION, CALQUE_SENTENCEPIECE_VERSION, at::get_cpu_capability(),
      std::thread::hardware_concurrency(),
      bf16 ? "fast here (AVX-512 BF16)" : "not fast here: this CPU has no instructions for it");
}

}  // namespace calque::cli
