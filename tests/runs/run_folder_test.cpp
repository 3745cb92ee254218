#include "calque/runs/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>

#include "temporary_folder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

// A process that prepares a run in this folder and then gets a signal.
void prepare_and_die(const fs::path& path, int signal, const std::function<void(RunFolder&)>& before) {
  ::signal(signal, SIG_DFL);  // under nohup it is ignored
  RunFolder run(path, RunFolder::Mode::create);
  before(run);
  raise(signal);
}

TEST(RunFolderDeathTest, ASignalWhileARunIsPreparedLeavesNoEmptyFolder) {
  const TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(prepare_and_die(folder / "new", signal, [](RunFolder&) {}), testing::KilledBySignal(signal),
                "");
    EXPECT_FALSE(fs::exists(folder / "new"));
  }
}

TEST(RunFolderDeathTest, ASignalLeavesWhatARunHolds) {
  const TemporaryFolder folder;
  EXPECT_EXIT(prepare_and_die(folder / "kept", SIGINT, [](RunFolder& run) { run.keep(); }),
              testing::KilledBySignal(SIGINT), "");
  EXPECT_TRUE(fs::exists(folder / "kept/checkpoints"));
  EXPECT_EXIT(prepare_and_die(folder / "filled", SIGINT,
                              [&](RunFolder& run) { folder.write("filled/" + run.id(), "x"); }),
              testing::KilledBySignal(SIGINT), "");
  EXPECT_TRUE(fs::exists(folder / "filled/run_id"));
}

}  // namespace
}  // namespace calque
