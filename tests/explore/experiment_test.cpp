#include "calque/explore/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"

namespace calque {
namespace {

ExperimentResult run(const std::string& name, const std::vector<std::string>& set = {}, uint64_t seed = 1) {
  ExperimentOptions options;
  options.seed = seed;
  return run_experiment(name, set, options);
}

void expect_all_hold(const ExperimentResult& result) {
  EXPECT_FALSE(result.claims.empty());
  EXPECT_FALSE(result.figures.empty());
  for (const Claim& claim : result.claims)
    EXPECT_TRUE(claim.holds) << claim.claim << "\n  expected " << claim.expected << "\n  found "
                             << claim.found;
}

}  // namespace

TEST(Explore, DeterministicClaimsHold) {
  for (const char* name : {"worked-example", "copy", "average", "key-query-value"})
    expect_all_hold(run(name));
}

TEST(Explore, RandomClaimsHoldForSeveralSeeds) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const char* name : {"single-head", "multi-head"}) expect_all_hold(run(name, {"samples=4000"}, seed));
  }
  expect_all_hold(run("scale", {"samples=4000"}, 2));
}

TEST(Explore, AnExperimentEndsWithWhatItsCheckThrows) {
  ExperimentOptions options;
  options.check = [] { throw std::runtime_error("left"); };
  for (const char* name : {"single-head", "multi-head", "scale"})
    EXPECT_THROW(run_experiment(name, {}, options), std::runtime_error) << name;
}

TEST(Explore, ParametersChangeTheNumbersAndAFalseClaimIsReported) {
  const auto weak = run("copy", {"t=1"}), strong = run("copy", {"t=15"});
  EXPECT_GT(weak.values["error"].get<double>(), 100 * strong.values["error"].get<double>());
  expect_all_hold(weak);
  // The vectors are too short for sharp attention: c₂ is no longer u_b, and the claim fails.
  const auto too_short = run("key-query-value", {"beta=0.5"});
  EXPECT_FALSE(too_short.holds());
}

TEST(Explore, TheWorkedExampleMatchesTheCourseMaterial) {
  const auto values = run("worked-example").values;
  EXPECT_EQ(values["scores"][2], (std::vector<double>{2, 8, -20}));
  EXPECT_NEAR(values["weights"][2][0].get<double>(), 0.00247, 5e-6);
  EXPECT_NEAR(values["output"][2][0].get<double>(), -7.94, 0.005);
  EXPECT_NEAR(values["output"][2][1].get<double>(), 0.067, 0.0005);
  EXPECT_EQ(values["v"][0], (std::vector<double>{16, 27}));
}

TEST(Explore, UnknownNamesAndInvalidValuesAreRefused) {
  EXPECT_THROW(run("copie"), UserError);
  EXPECT_THROW(run("copy", {"x=3"}), UserError);
  EXPECT_THROW(run("copy", {"t=much"}), UserError);
  EXPECT_THROW(run("trained"), UserError);
}

}  // namespace calque
