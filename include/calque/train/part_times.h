// PartTimes: where the time goes, by kind of work: matrix products, attention, norms, and so on. It listens
// to LibTorch's record of operations, in which our kernels name themselves (RECORD_USER_SCOPE).
#pragma once

#include <ATen/record_function.h>

#include <map>
#include <string>

namespace calque {

class PartTimes {
 public:
  PartTimes();  // measures while it is alive; only one at a time
  ~PartTimes();
  PartTimes(const PartTimes&) = delete;
  PartTimes& operator=(const PartTimes&) = delete;

  // Seconds on the calling thread, of matrix products and of the named parts. Products inside a part count as
  // products, except inside the optimizer.
  std::map<std::string, double> seconds() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace calque
