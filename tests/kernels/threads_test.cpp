#include "calque/kernels/threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "calque/kernels/norm.h"
#include "temporary_folder.h"

namespace calque {

TEST(Threads, TheirNumberIsTheOneThatWasSetAndAllCoresForZero) {
  const int before = num_threads();
  set_num_threads(3);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(1);
  EXPECT_EQ(num_threads(), 1);
  set_num_threads(0);
  EXPECT_EQ(num_threads(), available_cores());
  set_num_threads(before);
}

TEST(Threads, AvailableCoresAreThoseOfTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
}

// A folder with what the kernel shows of control groups.
class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  double limit() const { return cpu_time_limit(root_.path().string()); }
  TemporaryFolder root_;
};

TEST_F(ControlGroups, WithoutAnyThereIsNoLimit) {
  EXPECT_EQ(limit(), std::numeric_limits<double>::infinity());
}

TEST_F(ControlGroups, TheTightestLimitOfTheGroupAndThoseAroundItCounts) {
  write("proc/self/cgroup", "0::/system.slice/job.service/step");
  write("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_EQ(limit(), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/system.slice/job.service/cpu.max", "150000 100000");
  write("sys/fs/cgroup/system.slice/job.service/step/cpu.max", "max 100000");
  EXPECT_EQ(limit(), 1.5);
  write("sys/fs/cgroup/system.slice/job.service/step/cpu.max", "100000 50000");
  EXPECT_EQ(limit(), 1.5);
  write("sys/fs/cgroup/system.slice/cpu.max", "50000 100000");
  EXPECT_EQ(limit(), 0.5);
}

TEST_F(ControlGroups, OfAContainerTheMountItselfCounts) {
  write("proc/self/cgroup", "0::/a/path/of/the/host");
  write("sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(limit(), 3);
}

TEST_F(ControlGroups, Version1HasAFolderPerController) {
  write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/slurm/job_1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit(), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_quota_us", "400000");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit(), 4);
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

TEST(Threads, AnExceptionOfAUnitReachesTheCallerAndThePoolGoesOn) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(parallel_units(100, 3,
                                [](int64_t unit) {
                                  if (unit == 37) throw std::runtime_error("unit 37");
                                }),
                 std::runtime_error);
    std::atomic<int> runs = 0;
    parallel_units(100, 3, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST(Threads, UnitsInsideUnitsAndOfSeveralCallersRunOnceEach) {
  std::atomic<int> runs = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        parallel_units(8, 3, [&](int64_t) { parallel_units(5, 3, [&](int64_t) { ++runs; }); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, 3 * 50 * 8 * 5);
}

// Each unit waits for the others to begin, so that three threads have to take one each.
TEST(Threads, UnitsRunOnSeveralThreadsWhereLibTorchUsesOne) {
  const int before = num_threads();
  set_num_threads(3);
  std::atomic<int> begun = 0, most = 0;
  parallel_units(3, 3, [&](int64_t) {
    ++begun;
    for (int i = 0; i < 10000 && begun < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (at::get_num_threads() > most) most = at::get_num_threads();
    EXPECT_EQ(begun, 3);
  });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(before);
}

// A worker of a search must not divide its passes among threads that it does not have.
TEST(Threads, AThreadOfAParallelRegionIsAlone) {
  const int before = num_threads();
  set_num_threads(2);
  std::atomic<int> wrong = 0;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) { wrong += num_threads() != 1; });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(num_threads(), 2);
  set_num_threads(before);
}

TEST(Threads, InstructionsAreThoseTheSystemLists) {
  std::ifstream file("/proc/cpuinfo");
  const std::string features{std::istreambuf_iterator<char>(file), {}};
  if (features.empty()) GTEST_SKIP();
  const auto lists = [&](const char* feature) { return features.find(feature) != std::string::npos; };
  EXPECT_EQ(has_bfloat16_instructions(), lists("avx512_bf16"));
  EXPECT_EQ(has_avx512(), lists("avx512bw") && lists("avx512vl"));
  EXPECT_EQ(has_unused_avx512(), has_avx512() && !lists("GenuineIntel"));
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
