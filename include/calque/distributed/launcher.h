// Launcher: starts the processes of a world, on this machine or on several, watches over them, and starts
// them again after a failure: `calque launch`.
#pragma once

#include <string>
#include <vector>

namespace calque {

struct Host {
  std::string name;  // empty: this machine
  int processes = 1;
};

struct LaunchOptions {
  std::vector<Host> hosts = {Host{}};
  std::string remote_shell = "ssh";  // called as `ssh HOST COMMAND…`
  std::string address;               // of the first host, as the others reach it; empty: its name
  int port = 0;                      // 0: a free one, if all processes are on this machine
  int max_restarts = 0;
  std::string job = {};    // a name for all attempts; empty: launch() makes one
  std::string token = {};  // what the processes of this job have in common; empty: launch() makes one
};

// "a:2,b" is two processes on a and one on b. A UserError explains what is wrong with a list.
std::vector<Host> parse_hosts(const std::string& list);

// The environment of each process, by rank: "RANK=0", "WORLD_SIZE=2" and so on.
std::vector<std::vector<std::string>> launch_environments(const LaunchOptions& options, int restarts);

// Leaves out the hosts that do not answer. The address of the first one is forgotten with it.
void keep_hosts(LaunchOptions& options, const std::vector<bool>& answers);

// Runs the command (program and arguments) once per process and returns the exit code for all: 0 if each
// ended well, else that of the first that failed. If one is killed or fails other than through the user's
// fault, all are ended and started again, up to `max_restarts` times, without the hosts that do not answer
// any more.
int launch(LaunchOptions options, const std::vector<std::string>& command);

}  // namespace calque
