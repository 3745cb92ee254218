// calque --version: ours, the libraries', and what this machine can do.
#include <ATen/Version.h>
#include <torch/version.h>

#include <fmt/format.h>

#include "calque/cli/command.h"
#include "calque/kernels/threads.h"

namespace calque::cli {

std::string version_text() {
  return fmt::format(
      "calque {}\nLibTorch {}\nSentencePiece {}\nCPU: {} for matrix products, {} cores\n"
      "bfloat16: {}",
      CALQUE_VERSION, TORCH_VERSION, CALQUE_SENTENCEPIECE_VERSION, at::get_cpu_capability(),
      available_cores(),
      has_bfloat16_instructions()
          ? "yes (AVX-512 BF16): train.precision=bfloat16 is faster than float32"
          : "no instructions for it: train.precision=bfloat16 is no faster than float32");
}

}  // namespace calque::cli
