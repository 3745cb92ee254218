// Several ranks as threads of one process, for tests: each has a ProcessGroup of its own over loopback.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "calque/distributed/process_group.h"

namespace calque {

inline int unused_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(probe, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  close(probe);
  return ntohs(address.sin_port);
}

// Calls `work` once per rank with its world, before the ranks have met; an exception that leaves it fails the
// test.
inline void run_worlds(int size, const std::function<void(const World&)>& work) {
  const int port = unused_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work({.rank = rank, .size = size, .local_rank = rank, .local_size = size, .port = port});
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The same with their groups.
inline void run_ranks(int size, const std::function<void(ProcessGroup&)>& work) {
  run_worlds(size, [&](const World& world) {
    ProcessGroup group(world);
    work(group);
  });
}

}  // namespace calque
