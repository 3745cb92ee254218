#include "calque/kernels/device.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"

namespace calque {
namespace {

std::string refusal(const std::string& name) {
  try {
    find_device(name, "--device");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(FindDevice, TheProcessorAlwaysAndAnAcceleratorWhereThereIsOne) {
  EXPECT_TRUE(find_device("cpu", "--device").is_cpu());
  wait_for(find_device("auto", "--device"));
  if (at::hasCUDA()) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(find_device("auto", "--device").is_cpu());
  EXPECT_THAT(refusal("cuda"), testing::HasSubstr("--device=cuda: this LibTorch has no such device"));
  EXPECT_THAT(refusal("cuda:1"), testing::HasSubstr("no such device"));
}

TEST(FindDevice, RefusesWhatIsNoDevice) {
  for (const char* name : {"", "gpu", "cpu:x", "CUDA", "cuda:-2"})
    EXPECT_THAT(refusal(name), testing::HasSubstr("no such kind of device")) << name;
  EXPECT_THAT(refusal("meta"), testing::HasSubstr("no such device"));  // it has no data
}

}  // namespace calque
