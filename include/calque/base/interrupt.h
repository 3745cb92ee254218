// Interrupt: while an object of this class exists, SIGINT, SIGTERM and SIGHUP set requested() instead of
// killing the process. A second signal exits immediately. An object inside the lifetime of another shares
// its state.
#pragma once

namespace calque {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace calque
