#include "calque/train/rank_check.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "calque/base/error.h"
#include "calque/distributed/build_identity.h"
#include "distributed/ranks.h"

namespace calque {
namespace {

using testing::HasSubstr;

// The message on every rank, if rank 1 differs as `change` says.
std::string refusal(const std::function<void(RunConfig&, RankIdentity&)>& change,
                    const RunConfig& common = {}) {
  std::string first;
  run_ranks(2, [&](ProcessGroup& group) {
    RunConfig config = common;
    RankIdentity identity{"train", "valid", "base", 2, true};
    if (group.rank() == 1) change(config, identity);
    std::string message;
    try {
      check_ranks_alike(group, config, identity);
    } catch (const UserError& error) {
      message = error.what();
    }
    const auto all = group.gather(message);
    EXPECT_EQ(all[0], all[1]);
    if (group.is_first()) first = message;
  });
  return first;
}

TEST(RankCheck, RanksThatAreAlikeMayBegin) {
  EXPECT_EQ(refusal([](RunConfig&, RankIdentity&) {}), "");
  EXPECT_EQ(refusal([](RunConfig& config, RankIdentity&) {
              config.finetune.init_from = "/elsewhere";  // paths may differ: contents are compared
              config.tokenizer.path = "/elsewhere";
            }),
            "");
}

TEST(RankCheck, TheNumberOfThreadsMayDifferWhereItChangesNothing) {
  const auto with = [](Precision precision, bool bias) {
    RunConfig config;
    config.train.precision = precision;
    config.model.bias = bias;
    return refusal(
        [](RunConfig& other, RankIdentity& identity) { other.train.threads = identity.threads = 1; }, config);
  };
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    EXPECT_EQ(with(precision, false), "");
    EXPECT_THAT(with(precision, true), HasSubstr("train.threads: 2 on rank 0"));
  }
}

TEST(RankCheck, ADifferenceIsRefusedWithBothValues) {
  EXPECT_THAT(
      refusal([](RunConfig& config, RankIdentity&) { config.train.batch_tokens = 8; }),
      testing::AllOf(HasSubstr("train.batch_tokens: 4096 on rank 0 ("), HasSubstr(", but 8 on rank 1 (")));
  EXPECT_THAT(
      refusal([](RunConfig&, RankIdentity& identity) { identity.train_hash = "other"; }),
      testing::AllOf(HasSubstr("data.train, as a hash: train on rank 0"), HasSubstr("but other on rank 1")));
  EXPECT_THAT(refusal([](RunConfig&, RankIdentity& identity) { identity.base_hash = ""; }),
              HasSubstr("model.init_from, as a hash: base on rank 0"));
  EXPECT_THAT(refusal([](RunConfig&, RankIdentity& identity) { identity.bfloat16 = false; }),
              HasSubstr("bfloat16 instructions: yes on rank 0"));
}

TEST(RankCheck, BuildsOfDifferentCodeDiffer) {
  const std::filesystem::path copy = fmt::format("{}/build-{}", testing::TempDir(), getpid());
  std::filesystem::copy_file("/proc/self/exe", copy);
  EXPECT_EQ(build_identity(copy), build_identity());
  std::ofstream(copy, std::ios::app) << "x";
  EXPECT_NE(build_identity(copy), build_identity());
  std::filesystem::remove(copy);
}

}  // namespace
}  // namespace calque
