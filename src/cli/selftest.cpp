// calque selftest: whether a device computes what it should, and how fast.
#include "calque/train/selftest.h"

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/kernels/threads.h"

namespace calque::cli {
namespace {

struct SelftestOptions {
  std::string device = "cpu";
  bool portable = false;
  int64_t threads = 0;
  bool as_json = false;
};

void run_selftest_command(const SelftestOptions& options) {
  set_num_threads(options.threads);
  const SelftestSide tested{chosen_device(options.device), options.portable};
  const Selftest test = run_selftest(tested);
  options.as_json ? print_json(test.to_json()) : print(test.to_text());
  if (!test.passed()) {
    log::error("{}: results differ by more than rounding explains", tested.name());
    throw Exit{exit_failed};
  }
}

}  // namespace

void add_selftest_command(CLI::App& app) {
  static SelftestOptions options;
  CLI::App* command = add_command(
      app, "selftest", "Check that a device computes what it should: kernels, training, translating, speed",
      "calque selftest --device cuda");
  add_device_option(*command, options.device);
  command->add_flag("--portable", options.portable,
                    "On the CPU: use the kernels that other devices use, to check these");
  command->add_option("--threads", options.threads, "Processor threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--json", options.as_json, "Print the checks as JSON");
  command->callback([] { run_selftest_command(options); });
}

}  // namespace calque::cli
