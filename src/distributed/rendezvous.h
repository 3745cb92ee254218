// Rendezvous: the processes of a world find each other through a TCPStore, say who they are, and are compared
// before anything else happens between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "calque/distributed/process_group.h"

namespace calque {

using Milliseconds = std::chrono::milliseconds;

inline Milliseconds milliseconds(double seconds) {
  return Milliseconds(static_cast<int64_t>(seconds * 1000));
}
// As a store has them.
inline std::vector<uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

// What a process says of itself.
struct Introduction {
  std::string name;     // for people: its machine and process
  std::string machine;  // its processor cores are shared with those of the same name …
  std::string cores;    // … whose sets of cores have any in common with this one: "0-3,8"
  std::string network;  // has a loopback interface of its own
  std::string nonce;    // no other process has it, nor this one after a restart
  std::string job;      // see World
  int restarts = 0;
  Claims claims;
};

struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;  // with names that no other start of these processes uses
  std::vector<Introduction> processes;    // by rank
  std::string address;                    // rank 0's, for tensors, as figures
};

Introduction introduce_this_process(const World& world, const Claims& claims);

// Waits for all processes. A UserError on each if a claim of one is not that of rank 0; RankLost with the
// ranks that are missing after world.start_seconds.
Meeting meet(const World& world, const Claims& claims);

// Which processes share cores with this one, and the place of this one among those of its machine: sets
// local_rank and local_size. What rank 0's launcher says of restarts and the job counts for all: torchrun's
// agents count the restarts of their own machine.
void place(World& world, const std::vector<Introduction>& processes);

// Whether two sets of cores in the kernel's notation have one in common: "0-3,8".
bool share_cores(const std::string& a, const std::string& b);

// The message about the first difference from rank 0; empty if there is none.
std::string describe_difference(const std::vector<Claims>& claims, const std::vector<std::string>& names);

}  // namespace calque
