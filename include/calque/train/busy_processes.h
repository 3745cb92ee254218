// BusyProcesses: processes that keep the processor busy beside a benchmark. They end with the object, and by
// themselves after ten minutes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace calque {

class BusyProcesses {
 public:
  // nice: 0 to 19; they have the less of the processor the higher it is.
  BusyProcesses(int64_t count, int64_t nice);
  ~BusyProcesses();
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;

  const std::vector<pid_t>& children() const { return children_; }

 private:
  void end();

  std::vector<pid_t> children_;
};

// The processor time that this process has used so far, of all threads, in seconds.
double processor_seconds();

}  // namespace calque
