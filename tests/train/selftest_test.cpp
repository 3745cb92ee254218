#include "calque/train/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fake_device.h"

namespace calque {

using testing::HasSubstr;

TEST(Selftest, PassesOnTheCpuWithThePortableKernels) {
  const Selftest test = run_selftest({torch::kCPU, true}, 0);
  EXPECT_TRUE(test.passed()) << test.to_text();
  EXPECT_EQ(test.checks.size(), 22U);
  EXPECT_TRUE(test.speeds.empty());
  EXPECT_TRUE(test.other.is_fast());
  EXPECT_TRUE(SelftestSide{}.is_fast());
  EXPECT_THAT(test.to_text(), HasSubstr("cpu (portable kernels); training and translations compared with cpu "
                                        "(fast kernels)"));
  EXPECT_THAT(test.to_text(), HasSubstr("all 22 checks passed"));
  EXPECT_EQ(test.to_json()["passed"], true);
}

TEST(Selftest, PassesOnAnotherDevice) {
  const FakeDevice fake;
  const Selftest test = run_selftest({fake.device, false}, 0);
  EXPECT_TRUE(test.passed()) << test.to_text();
  EXPECT_THAT(test.to_text(), HasSubstr("hpu:0 (portable kernels)"));
}

TEST(Selftest, TheFastKernelsPassToo) {
  for (const SelftestCheck& check : check_kernels({})) EXPECT_TRUE(check.passed()) << check.name;
}

TEST(Selftest, ADeviceThatComputesNothingFails) {  // the meta device has no data
  for (const SelftestCheck& check : check_kernels({torch::kMeta, false})) {
    EXPECT_FALSE(check.passed()) << check.name;
    EXPECT_FALSE(check.note.empty());
    EXPECT_TRUE(check.to_json()["difference"].is_null());
  }
}

TEST(Selftest, ALargeOrUndefinedDifferenceFails) {
  Selftest test;
  test.checks.push_back(run_check("equal", 1e-3, [](SelftestCheck& check) { check.difference = 1e-4; }));
  EXPECT_TRUE(test.passed());
  for (const double difference : {2e-3, std::nan(""), static_cast<double>(INFINITY)})
    test.checks.push_back(
        run_check("other", 1e-3, [&](SelftestCheck& check) { check.difference = difference; }));
  EXPECT_FALSE(test.passed());
  EXPECT_THAT(test.to_text(), HasSubstr("3 of 4 checks failed"));
  EXPECT_THAT(test.to_text(), HasSubstr("FAIL"));
}

}  // namespace calque
