#include "../../src/serve/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "calque/serve/engine.h"

namespace calque {
namespace {

using testing::ElementsAre;

// Keeps both threads until it is opened.
class Gate {
 public:
  explicit Gate(Background& background) {
    std::vector<std::future<void>> begun;
    for (int i = 0; i < 2; ++i) {
      const auto promise = std::make_shared<std::promise<void>>();
      begun.push_back(promise->get_future());
      background.add("gate", [promise, opened = opened_] {
        promise->set_value();
        opened.wait();
      });
    }
    for (auto& one : begun) one.wait();
  }
  void open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future();
};

}  // namespace

TEST(Background, ClientsTakeTurns) {
  Background background;
  std::mutex mutex;
  std::vector<std::string> done;
  Gate gate(background);
  for (const char* client : {"a", "a", "a", "a", "b"}) {
    background.add(client, [&, client] {
      const std::lock_guard lock(mutex);
      done.emplace_back(client);
    });
  }
  gate.open();
  background.join();
  ASSERT_EQ(done.size(), 5U);
  EXPECT_THAT(std::vector(done.begin() + 3, done.end()), ElementsAre("a", "a"));  // two threads may swap two
}

TEST(Background, OneClientLeavesRoomForOthersAndAllTogetherAreBounded) {
  Background background;
  Gate gate(background);
  for (int i = 0; i < 32; ++i) {
    background.check_room("a");
    background.add("a", [] {});
  }
  EXPECT_THROW(background.check_room("a"), QueueFull);
  background.check_room("b");
  for (int i = 0; i < 30; ++i) background.add("b", [] {});
  EXPECT_THROW(background.check_room("c"), QueueFull);
  gate.open();
  background.join();
  background.check_room("a");
}

}  // namespace calque
