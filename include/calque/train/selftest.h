// Selftest: shows that a device computes what it should: the kernels against their references, training and
// translating against the CPU, and the speed of both. It needs no files: models and batches are random, from
// fixed seeds.
#pragma once

#include <torch/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace calque {

// Where and with which kernels something runs.
struct SelftestSide {
  torch::Device device = torch::kCPU;
  bool portable = false;  // the CPU with the kernels of other devices

  bool is_fast() const { return device.is_cpu() && !portable; }
  std::string name() const;
};

struct SelftestCheck {
  std::string name;
  double difference = 0;  // the largest, relative to the largest value where that is above 1
  double allowed = 0;
  std::string note = {};  // for people: what failed, or how many are equal

  bool passed() const { return difference <= allowed; }  // NaN fails
  nlohmann::json to_json() const;
};

struct SelftestSpeed {
  std::string name;
  double tested = 0, other = 0;  // tokens per second of the device, and of what it is compared with

  nlohmann::json to_json() const;
};

struct Selftest {
  SelftestSide tested, other;
  std::vector<SelftestCheck> checks;
  std::vector<SelftestSpeed> speeds;

  bool passed() const;
  nlohmann::json to_json() const;
  std::string to_text() const;
};

// A device is compared with the CPU's fast kernels, and these with the portable ones.
// timed_seconds: how long each speed is measured, at least; 0: no speeds.
Selftest run_selftest(const SelftestSide& tested, double timed_seconds = 2);

// The kernels of one side against their references on the CPU.
std::vector<SelftestCheck> check_kernels(const SelftestSide& tested);

// A check whose work throws fails with what was thrown.
SelftestCheck run_check(const std::string& name, double allowed,
                        const std::function<void(SelftestCheck& check)>& work);

}  // namespace calque
