// Interrupt: while one is alive, SIGINT and SIGTERM ask for an orderly end; a second signal ends the program
// at once.
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
