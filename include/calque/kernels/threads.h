// Threads, memory allocation and CPU features of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace calque {

// The cores that this process may use: those of its affinity mask (taskset, Slurm), and no more than the CPU
// time that its control groups allow (containers, systemd).
int available_cores();
// The CPU time per second that the control groups of this process allow, the tightest of the group and those
// around it; infinity without a limit. `root` is put before /proc and /sys.
double cpu_time_limit(const std::string& root = "");
// 0: all available cores, divided among the `processes` of this machine.
void set_num_threads(int64_t threads, int processes = 1);
int num_threads();

// Keeps freed memory in the process instead of returning it to the system, which would zero every page
// again. For training, which allocates the same tensors in every step.
void keep_freed_memory();

// Runs units 0 … count - 1 on at most `threads` threads of this process's ThreadPool: each takes the next
// unit when it has finished one.
void parallel_units(int64_t count, int64_t threads, const std::function<void(int64_t unit)>& run);
// Calls run(begin, end) for rows 0 … rows - 1 in tasks of so many rows.
void parallel_rows(int64_t rows, int64_t rows_per_task,
                   const std::function<void(int64_t begin, int64_t end)>& run);

bool has_avx512();                 // including BW and VL
bool has_bfloat16_instructions();  // AVX-512 BF16
// Whether the processor has AVX-512 and LibTorch's library for products in float32, MKL, does not use it: on
// processors that are not Intel's it stays with AVX2.
bool has_unused_avx512();

}  // namespace calque
