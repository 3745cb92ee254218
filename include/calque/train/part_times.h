// PartTimes: where the time of a computation goes, by the kind of work: matrix products, attention, norms,
// and so on. It listens to LibTorch's own record of operations, in which our kernels name themselves
// (RECORD_USER_SCOPE).
#pragma once

#include <ATen/record_function.h>

#include <map>
#include <string>

namespace calque {

class PartTimes {
 public:
  PartTimes();   // counts from here …
  ~PartTimes();  // … to here; only one at a time
  PartTimes(const PartTimes&) = delete;
  PartTimes& operator=(const PartTimes&) = delete;

  // Seconds on the calling thread: products, and the parts that named themselves. What is inside a part
  // counts as the part's, but for products; all of the optimizer is the optimizer's.
  std::map<std::string, double> seconds() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace calque
