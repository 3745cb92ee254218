// calque --version: ours, the libraries', and what this machine can do.
#include <ATen/Version.h>
#include <torch/version.h>

#include <fmt/format.h>

#include <thread>

#include "calque/cli/command.h"
#include "calque/kernels/threads.h"

namespace calque::cli {

std::string version_text() {
  return fmt::format(
      "calque {}\nLibTorch {}\nSentencePiece {}\nCPU: {} for matrix products, {} cores\n"
      "bfloat16: {}",
      CALQUE_VERSION, TORCH_VERSION, CALQUE_SENTENCEPIECE_VERSION, at::get_cpu_capability(),
      std::thread::hardware_concurrency(),
      fast_bfloat16() ? "fast here (AVX-512 BF16)" : "not fast here: this CPU has no instructions for it");
}

}  // namespace calque::cli
