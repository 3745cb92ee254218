#include "calque/train/busy_processes.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <string>

#include "calque/base/error.h"

namespace calque {

BusyProcesses::BusyProcesses(int64_t count, int64_t nice) {
  const std::string level = std::to_string(nice), parent = std::to_string(getpid());
  // Ends with this process, which a signal may end: a loop of some milliseconds between two looks.
  const char* const loop = "while kill -0 $0; do i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; done";
  const char* arguments[] = {"timeout", "--foreground", "600", "nice",         "-n",   level.c_str(),
                             "sh",      "-c",           loop,  parent.c_str(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group each, which ends as a whole
  for (int64_t i = 0; i < count; ++i) {
    pid_t child = 0;
    const int failed =
        posix_spawnp(&child, "timeout", nullptr, &attributes, const_cast<char**>(arguments), environ);
    if (failed != 0) {
      posix_spawnattr_destroy(&attributes);
      end();
      throw SystemError("timeout", failed);
    }
    children_.push_back(child);
  }
  posix_spawnattr_destroy(&attributes);
}

BusyProcesses::~BusyProcesses() { end(); }

void BusyProcesses::end() {
  // Not by way of `timeout` alone: one that is just starting would end without the loop that it has begun.
  for (const pid_t child : children_) kill(-child, SIGKILL);
  for (const pid_t child : children_) waitpid(child, nullptr, 0);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace calque
