#include "calque/base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace calque {
namespace {

std::atomic<int> signals_seen = 0;
struct sigaction previous_interrupt, previous_terminate;

void note_signal(int) {
  if (signals_seen.fetch_add(1) > 0) _exit(130);
}

}  // namespace

Interrupt::Interrupt() {
  signals_seen = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

bool Interrupt::requested() const { return signals_seen > 0; }

}  // namespace calque
