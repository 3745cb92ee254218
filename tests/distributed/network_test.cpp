#include "../../src/distributed/network.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/distributed/rendezvous.h"
#include "calque/base/error.h"

namespace calque {
namespace {

using testing::HasSubstr;

TEST(Network, ListensAtTheAddressAndNowhereElse) {
  const Listener listener = listen_at("127.0.0.1", 0);
  EXPECT_EQ(listener.address, "127.0.0.1");
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(listener.socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
  close(listener.socket);
}

TEST(Network, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_THAT([] { listen_at("198.51.100.7", 0); },
              testing::ThrowsMessage<UserError>(HasSubstr(
                  "MASTER_ADDR=198.51.100.7: not an address of this machine, on which rank 0 runs")));
}

TEST(Network, APortThatIsTakenIsNamed) {
  const Listener listener = listen_at("127.0.0.1", 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(listener.socket, reinterpret_cast<sockaddr*>(&address), &size);
  EXPECT_THAT([&] { listen_at("127.0.0.1", ntohs(address.sin_port)); },
              testing::ThrowsMessage<UserError>(HasSubstr("Address already in use")));
  close(listener.socket);
}

TEST(Network, ANameThatIsLoopbackHereBecomesAnAddressThatOthersReach) {
  EXPECT_EQ(reachable_address("127.0.0.1", false), "127.0.0.1");
  EXPECT_EQ(reachable_address("localhost", false), "localhost");
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const std::string own = own_network_address();
  try {
    if (!is_loopback(numeric_addresses(name).front())) GTEST_SKIP() << name << " is no loopback address here";
  } catch (const UserError&) {
    GTEST_SKIP() << name << " has no address";
  }
  EXPECT_EQ(reachable_address(name, true), name);
  if (own.empty()) GTEST_SKIP() << "this machine is in no network";
  EXPECT_EQ(reachable_address(name, false), own);
  EXPECT_FALSE(is_loopback(own));
}

TEST(Network, OnTheWayToLoopbackIsLoopback) {
  EXPECT_EQ(own_address_towards("127.0.0.1", 1), "127.0.0.1");
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
}

TEST(Rendezvous, CoresAreSharedWhereSetsOverlap) {
  EXPECT_TRUE(share_cores("0-3", "3,8"));
  EXPECT_TRUE(share_cores("0-3,8-11", "5,9"));
  EXPECT_FALSE(share_cores("0-3", "4-7"));
  EXPECT_FALSE(share_cores("0,2", "1,3"));
  EXPECT_TRUE(share_cores("", "1"));
}

Introduction at(const std::string& machine, const std::string& cores, int restarts = 0) {
  return {"", machine, cores, machine, "", "job", restarts, {}};
}

TEST(Rendezvous, EveryProcessIsPlacedOnItsMachine) {
  // Two machines; on the second, a launcher has bound the processes to cores of their own.
  const std::vector<Introduction> processes = {at("a", "0-1"), at("b", "0", 2), at("a", "0-1"), at("b", "1")};
  World world{.rank = 2, .size = 4};
  place(world, processes);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.restarts, 2);
  world.rank = 3;
  place(world, processes);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 1);
}

}  // namespace
}  // namespace calque
