#include "calque/base/quiet_log.h"

#include <gtest/gtest.h>

#include "calque/base/file.h"
#include "calque/base/log.h"
#include "temporary_folder.h"

namespace calque {

TEST(QuietLog, KeepsMessagesFromTheTerminalButNotFromTheFile) {
  const TemporaryFolder folder;
  log::start(log::Verbosity::normal);
  log::start_file(folder / "log.txt");
  testing::internal::CaptureStderr();
  log::info("before");
  {
    QuietLog quiet;
    log::info("inside");
    log::warn("a warning");
    quiet.say("said");
    log::info("again inside");
    log::error("an error");
  }
  log::info("after");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "before\nsaid\nerror: an error\nafter\n");
  log::stop_file();
  EXPECT_NE(read_file(folder / "log.txt").find("again inside"), std::string::npos);
  log::start(log::Verbosity::quiet);
  testing::internal::CaptureStderr();
  {
    QuietLog quiet;
    log::warn("nothing");
    quiet.say("nothing in quiet mode");
  }
  log::warn("still shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: still shown\n");
}

}  // namespace calque
