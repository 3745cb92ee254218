#include "calque/kernels/threads.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "calque/kernels/norm.h"

namespace calque {

TEST(Threads, TheirNumberIsTheOneThatWasSetAndAllCoresForZero) {
  const int before = num_threads();
  set_num_threads(3);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(1);
  EXPECT_EQ(num_threads(), 1);
  set_num_threads(0);
  EXPECT_EQ(num_threads(), static_cast<int>(std::thread::hardware_concurrency()));
  set_num_threads(before);
}

TEST(Threads, EveryUnitRunsOnceWhateverTheNumberOfThreads) {
  for (const int64_t count : {0, 1, 2, 7, 100}) {
    for (const int64_t threads : {1, 2, 5}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      parallel_units(count, threads, [&](int64_t unit) { ++runs[static_cast<size_t>(unit)]; });
      for (const auto& one : runs) EXPECT_EQ(one, 1) << count << " units, " << threads << " threads";
    }
  }
}

TEST(Threads, Bfloat16InstructionsAreThoseTheSystemLists) {
  std::ifstream file("/proc/cpuinfo");
  const std::string features{std::istreambuf_iterator<char>(file), {}};
  if (features.empty()) GTEST_SKIP();
  EXPECT_EQ(has_bfloat16_instructions(), features.find("avx512_bf16") != std::string::npos);
}

// Activations come and go in the same sizes; what is freed is used again instead of asking the system.
TEST(ActivationMemory, AFreedActivationIsUsedForTheNextOfItsSize) {
  const torch::NoGradGuard no_gradients;
  const auto weight = torch::ones({64});
  const auto place = [&](int64_t rows) {
    const torch::Tensor y = rms_norm(torch::ones({rows, 64}), weight, 1e-5);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(y.const_data_ptr()) % 64, 0U);
    return y.const_data_ptr();
  };
  for (const int64_t rows : {1, 4, 5, 100, 1000, 5000}) {
    const void* first = place(rows);
    EXPECT_EQ(place(rows), first) << rows;
  }
  // Two that live at the same time do not share memory.
  const torch::Tensor x = torch::randn({100, 64}), a = rms_norm(x, weight, 1e-5), kept = a.clone(),
                      b = rms_norm(-x, weight, 1e-5);
  EXPECT_NE(a.const_data_ptr(), b.const_data_ptr());
  EXPECT_TRUE(torch::equal(a, kept));
  // Sizes near the limits of a class: every value can be written and read back.
  for (int64_t rows = 1; rows < 70; ++rows) {
    const torch::Tensor one = torch::randn({rows, 61}), y = rms_norm(one, torch::ones({61}), 1e-5),
                        z = rms_norm(one * 2, torch::ones({61}), 4e-5);
    EXPECT_LT((y - z).abs().max().item<double>(), 1e-5) << rows;
  }
}

}  // namespace calque
