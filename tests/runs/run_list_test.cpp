#include "calque/runs/run_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "temporary_folder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A run with a checkpoint whose weights are a hard link, as a trained one has.
void make_run(const TemporaryFolder& folder, const std::string& name) {
  fs::create_directories(folder / ("runs/" + name + "/checkpoints/step-5"));
  fs::create_directories(folder / ("runs/" + name + "/checkpoints/best"));
  folder.write("runs/" + name + "/config.yaml", "run: " + name + "\n");
  folder.write("runs/" + name + "/metrics.jsonl", "{\"step\": 5}\n");
  folder.write("runs/" + name + "/.lock", "");
  folder.write("runs/" + name + "/checkpoints/step-5/weights", std::string(100'000, 'w'));
  fs::create_hard_link(folder / ("runs/" + name + "/checkpoints/step-5/weights"),
                       folder / ("runs/" + name + "/checkpoints/best/weights"));
}

template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(RunList, CountsAHardLinkOnce) {
  const TemporaryFolder folder;
  make_run(folder, "one");
  const auto runs = list_runs(folder / "runs");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].name, "one");
  EXPECT_EQ(runs[0].state, "stopped");
  EXPECT_EQ(runs[0].step, 5);
  EXPECT_LT(runs[0].bytes, 101'000);
}

TEST(RunList, ASearchIsListedWithoutItsTrialsAndCanBeRemoved) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "runs/demo-tune");
  folder.write("runs/demo-tune/search.json", "{}");
  make_run(folder, "demo-tune/trial-00");
  make_run(folder, ".deleted-one-123");
  const auto runs = list_runs(folder / "runs");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].name, "demo-tune");
  EXPECT_EQ(runs[0].state, "search");
  EXPECT_GT(runs[0].bytes, 99'000);
  remove_run(folder / "runs", "demo-tune");
  EXPECT_FALSE(fs::exists(folder / "runs/demo-tune"));
}

TEST(RunList, AnArchivedRunComesBackAsItWas) {
  const TemporaryFolder folder;
  make_run(folder, "one");
  const fs::path archive = folder / "one.tar.gz";
  EXPECT_LT(archive_run(folder / "runs", "one", archive), 10'000);
  EXPECT_TRUE(fs::exists(folder / "runs/one"));
  EXPECT_THAT(message_of([&] { archive_run(folder / "runs", "one", archive); }),
              HasSubstr("one.tar.gz: already exists"));
  EXPECT_THAT(message_of([&] { restore_run(folder / "runs", archive); }), HasSubstr("one: already exists"));
  remove_run(folder / "runs", "one");
  EXPECT_FALSE(fs::exists(folder / "runs/one"));
  EXPECT_EQ(restore_run(folder / "runs", archive), "one");
  EXPECT_EQ(read_file(folder / "runs/one/config.yaml"), "run: one\n");
  EXPECT_EQ(read_file(folder / "runs/one/checkpoints/best/weights"), std::string(100'000, 'w'));
  EXPECT_EQ(fs::hard_link_count(folder / "runs/one/checkpoints/best/weights"), 2U);
  EXPECT_FALSE(fs::exists(folder / "runs/one/.lock"));
  for (const auto& entry : fs::directory_iterator(folder / "runs"))
    EXPECT_EQ(entry.path().filename(), "one") << "a temporary folder was left";
}

TEST(RunList, WhatIsNoArchiveOfARunIsRefused) {
  const TemporaryFolder folder;
  folder.write("text", "not an archive");
  fs::create_directories(folder / "runs");
  EXPECT_THAT(message_of([&] { restore_run(folder / "runs", folder / "text"); }), HasSubstr("tar failed"));
  ASSERT_EQ(std::system(
                ("tar -czf " + (folder / "other.tar.gz").string() + " -C " + folder.path().string() + " text")
                    .c_str()),
            0);
  EXPECT_THAT(message_of([&] { restore_run(folder / "runs", folder / "other.tar.gz"); }),
              HasSubstr("not an archive of a run"));
  EXPECT_TRUE(fs::is_empty(folder / "runs"));
}

// A checkpoint that is written later would land where the link leads.
TEST(RunList, AnArchiveWithLinksIsRefused) {
  const TemporaryFolder folder;
  make_run(folder, "one");
  fs::create_directory(folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", folder / "runs/one/checkpoints/step-9");
  archive_run(folder / "runs", "one", folder / "link.tar.gz");
  remove_run(folder / "runs", "one");
  EXPECT_THAT(message_of([&] { restore_run(folder / "runs", folder / "link.tar.gz"); }),
              HasSubstr("\"one/checkpoints/step-9\" is neither a file nor a folder"));
  make_run(folder, "two");
  fs::rename(folder / "runs/two", folder / "two");
  fs::create_directory_symlink(folder / "two", folder / "runs/two");
  archive_run(folder / "runs", "two", folder / "run.tar.gz");
  fs::remove(folder / "runs/two");
  EXPECT_THAT(message_of([&] { restore_run(folder / "runs", folder / "run.tar.gz"); }),
              HasSubstr("\"two\" is neither a file nor a folder"));
  EXPECT_TRUE(fs::is_empty(folder / "runs"));
}

// tar takes such a name for a file on another machine, and would call ssh.
TEST(RunList, AColonInTheNameOfAnArchiveIsNoHost) {
  const TemporaryFolder folder;
  make_run(folder, "one");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  EXPECT_EQ(message_of([&] { archive_run("runs", "one", "host:one.tar.gz"); }), "no error");
  remove_run("runs", "one");
  EXPECT_EQ(message_of([&] { restore_run("runs", "host:one.tar.gz"); }), "no error");
  EXPECT_TRUE(fs::exists("runs/one/config.yaml"));
  fs::current_path(before);
}

TEST(RunList, ARunThatIsBeingTrainedIsLeftAlone) {
  const TemporaryFolder folder;
  make_run(folder, "one");
  const int lock = open((folder / "runs/one/.lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  ASSERT_EQ(write(lock, "123", 3), 3);
  EXPECT_EQ(list_runs(folder / "runs")[0].state, "training");
  EXPECT_THAT(message_of([&] { remove_run(folder / "runs", "one"); }), HasSubstr("process 123 is training"));
  EXPECT_THAT(message_of([&] { archive_run(folder / "runs", "one", folder / "a.tar.gz"); }),
              HasSubstr("process 123 is training"));
  close(lock);
  EXPECT_THAT(message_of([&] { remove_run(folder / "runs", "on"); }), HasSubstr("did you mean one?"));
}

TEST(RunList, TheEvaluationOfItsOwnTestSetStandsForARun) {
  const TemporaryFolder folder;
  EXPECT_FALSE(shown_evaluation(folder.path()));
  const auto write = [&](const std::string& name, double bleu, int age) {
    fs::create_directories(folder / ("evaluations/" + name));
    folder.write("evaluations/" + name + "/scores.json",
                 nlohmann::json{{"bleu", {{"score", bleu}}}, {"sentences", 5}}.dump());
    std::filesystem::last_write_time(folder / ("evaluations/" + name + "/scores.json"),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(age));
  };
  write("old", 1, 3);
  write("new", 2, 1);
  EXPECT_EQ(shown_evaluation(folder.path())->bleu, 2);
  write("test", 3, 2);
  EXPECT_EQ(shown_evaluation(folder.path())->bleu, 3);
  EXPECT_EQ(shown_evaluation(folder.path())->sentences, 5);
}

TEST(RunList, ARunThatWasNeverValidatedHasNoBleu) {
  const TemporaryFolder folder;
  make_run(folder, "a");
  folder.write("runs/a/summary.json", R"({"best_valid_bleu": -1.0})");
  EXPECT_FALSE(list_runs(folder / "runs").front().bleu);
  folder.write("runs/a/summary.json", R"({"best_valid_bleu": 0.0})");
  EXPECT_EQ(list_runs(folder / "runs").front().bleu, 0);
  EXPECT_EQ(list_runs(folder / "runs").front().bleu_on, "validation");
  fs::create_directories(folder / "runs/a/evaluations/news");
  folder.write("runs/a/evaluations/news/scores.json", R"({"bleu": {"score": 12.5}, "sentences": 5})");
  const auto runs = list_runs(folder / "runs");
  EXPECT_EQ(runs.front().bleu_on, "news");
  EXPECT_THAT(runs_table(runs), HasSubstr(" 12.5  news "));
}

}  // namespace calque
