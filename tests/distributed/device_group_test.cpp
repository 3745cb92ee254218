#include "calque/distributed/device_group.h"

#include "distributed/ranks.h"

namespace calque {
namespace {

TEST(DeviceOfProcess, EachProcessOfAMachineHasOneOfItsDevices) {
  EXPECT_EQ(device_of_process("cuda", 0, 4), "cuda:0");
  EXPECT_EQ(device_of_process("cuda", 3, 4), "cuda:3");
  EXPECT_EQ(device_of_process("cuda", 5, 4), "cuda:1");
  EXPECT_EQ(device_of_process("cuda:2", 1, 4), "cuda:2");
  EXPECT_EQ(device_of_process("cuda", 1, 1), "cuda");
  EXPECT_EQ(device_of_process("cuda", 1, 0), "cuda");
  EXPECT_EQ(device_of_process("cpu", 1, 4), "cpu");
}

TEST(DeviceGroup, CarriesTensorsOfTheCpuByGloo) {
  run_ranks(2, [](ProcessGroup& group) {
    DeviceGroup device_group(group, torch::kCPU);
    EXPECT_TRUE(device_group.device().is_cpu());
    const torch::Tensor values = torch::full({3}, group.rank() + 1.0);
    DeviceGroup::Pending pending = device_group.start_sum(values);
    pending.wait();
    EXPECT_TRUE(values.equal(torch::full({3}, 3.0)));
    const torch::Tensor all = device_group.gather(torch::full({2}, 1.0 * group.rank()));
    EXPECT_TRUE(all.equal(torch::tensor({0.0f, 0.0f, 1.0f, 1.0f}).view({2, 2})));
    if (group.is_first()) {
      device_group.send(torch::full({1}, 7.0), 1);
    } else {
      const torch::Tensor received = torch::zeros({1});
      device_group.receive(received, 0);
      EXPECT_EQ(received.item<float>(), 7);
    }
  });
}

}  // namespace
}  // namespace calque
