#include "calque/train/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/weight_names.h"
#include "temporary_folder.h"
#include "tiny_model.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CheckpointWriterTest : public testing::Test {
 protected:
  CheckpointWriterTest() : run_(folder_ / "run", RunFolder::Mode::create) {
    log::start(log::Verbosity::quiet);
  }

  // A different model for each seed.
  static CheckpointContent content(uint64_t seed, const std::string& run_id = "") {
    const auto decoder = make_decoder(tiny_config(), seed);
    CheckpointContent made;
    made.weights = weight_views(*decoder);
    made.config = hf_config(decoder->config());
    made.state = {{"x", torch::ones({2})}};
    made.progress = {{"step", seed}, {"run_id", run_id}};
    return made;
  }
  void write_step(uint64_t step, const std::string& run_id = "") {
    write_checkpoint(checkpoints() / ("step-" + std::to_string(step)), content(step, run_id));
  }
  fs::path checkpoints() const { return run_.checkpoints(); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(checkpoints())) all.push_back(entry.path().filename());
    return all;
  }

  TemporaryFolder folder_;
  RunFolder run_;
};

}  // namespace

TEST_F(CheckpointWriterTest, KeepsTheNewestAndTheModelsOfTheBestAndTheLast) {
  CheckpointWriter writer(run_, 2);
  for (uint64_t step = 1; step <= 4; ++step)
    writer.write(static_cast<int64_t>(step), content(step), step == 2);
  writer.finish();
  EXPECT_THAT(names(), UnorderedElementsAre("step-3", "step-4", "last", "best"));
  EXPECT_TRUE(same_model(checkpoints() / "last", checkpoints() / "step-4"));
  EXPECT_FALSE(same_model(checkpoints() / "best", checkpoints() / "last"));
  writer.mark("best", 3);
  EXPECT_TRUE(same_model(checkpoints() / "best", checkpoints() / "step-3"));
  writer.mark("best", 1);  // deleted: the mark stays
  EXPECT_TRUE(same_model(checkpoints() / "best", checkpoints() / "step-3"));
}

TEST_F(CheckpointWriterTest, AMarkWaitsForTheCheckpointThatIsBeingWritten) {
  CheckpointWriter writer(run_, 2);
  writer.write(1, content(1), false);
  writer.mark("best", 1);
  EXPECT_TRUE(same_model(checkpoints() / "best", checkpoints() / "step-1"));
}

TEST_F(CheckpointWriterTest, AnEarlierStepThanThoseThereIsKeptToo) {
  write_step(50);  // left behind by another run of the same name
  CheckpointWriter writer(run_, 1);
  writer.write(10, content(10), false);
  writer.finish();
  EXPECT_THAT(names(), UnorderedElementsAre("step-10", "step-50", "last"));
}

TEST_F(CheckpointWriterTest, AFailureIsThrownByTheNextCallAndOnlyOnce) {
  CheckpointWriter writer(run_, 1);
  CheckpointContent broken = content(1);
  fs::remove_all(checkpoints());
  folder_.write("run/checkpoints", "a file where the folder should be");
  writer.write(1, broken, false);
  EXPECT_ANY_THROW(writer.finish());
  EXPECT_NO_THROW(writer.finish());
  writer.write(2, broken, false);
  EXPECT_ANY_THROW(writer.mark("best", 2));
}

TEST_F(CheckpointWriterTest, CheckpointsAreListedFromTheNewestByTheirNames) {
  for (const char* name : {"step-9", "step-10", "step-007", "step-", "step-1x", "last", "xstep-3"})
    fs::create_directories(checkpoints() / name);
  fs::create_directory_symlink(checkpoints() / "step-9", checkpoints() / "step-11");
  fs::create_directories(checkpoints() / ".deleted-step-5");
  fs::create_directories(checkpoints() / ".step-8.old");  // its replacement was interrupted
  fs::create_directories(checkpoints() / "kept.old");
  std::vector<int64_t> steps;
  for (const auto& [step, path] : list_checkpoints(checkpoints())) {
    steps.push_back(step);
    EXPECT_EQ(path.parent_path(), checkpoints());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{10, 9, 8, 7}));
  EXPECT_FALSE(fs::exists(checkpoints() / ".deleted-step-5"));
  EXPECT_TRUE(fs::exists(checkpoints() / "kept.old"));
}

TEST_F(CheckpointWriterTest, TheNewestIntactCheckpointOfThisRunIsFound) {
  EXPECT_FALSE(newest_checkpoint(checkpoints(), "mine").has_value());
  write_step(1);  // of a release without names of runs
  write_step(2, "mine");
  write_step(3, "other");
  write_step(4, "mine");
  EXPECT_EQ(newest_checkpoint(checkpoints(), "mine")->folder(), checkpoints() / "step-4");
  std::string bytes = read_file(checkpoints() / "step-4/state.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(checkpoints() / "step-4/state.safetensors", bytes);
  log::start_file(folder_ / "log.txt");
  EXPECT_EQ(newest_checkpoint(checkpoints(), "mine")->folder(), checkpoints() / "step-2");
  log::stop_file();
  const std::string warning = read_file(folder_ / "log.txt");
  EXPECT_THAT(warning, HasSubstr("newer ones cannot be used:\n"));
  EXPECT_THAT(warning, HasSubstr("step-3: of another run"));
  EXPECT_THAT(warning, HasSubstr("step-4/state.safetensors: damaged"));
  EXPECT_EQ(newest_checkpoint(checkpoints(), "third")->folder(), checkpoints() / "step-1");
  fs::remove_all(checkpoints() / "step-1");
  try {
    newest_checkpoint(checkpoints(), "third");
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no checkpoint can be used:\n"));
    EXPECT_THAT(error.what(), HasSubstr("step-2: of another run"));
  }
}

}  // namespace calque
