// Fuzz target: a run's configuration, as its author wrote it and as a run stored it, and written again.
#include "calque/base/config.h"

#include "calque/runs/run_config.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file(data, size, [](const std::filesystem::path& file) {
    std::filesystem::rename(file, file.parent_path() / "config.yaml");
    try {
      calque::read_stored_run_config(file.parent_path());
    } catch (const calque::UserError&) {
    }
    calque::RunConfig config = calque::read_run_config(file.parent_path() / "config.yaml", {});
    calque::config_warnings(config);
    calque::show_config(calque::fields(config), file.parent_path());
  });
}
