#include "calque/base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace calque {
namespace {

constexpr int handled[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int count = sizeof handled / sizeof handled[0];

std::atomic<int> signals_seen = 0;
int objects = 0;  // that exist; the first one handles the signals for those inside it
struct sigaction previous[count];

void note_signal(int) {
  if (signals_seen.fetch_add(1) > 0) _exit(130);
}

}  // namespace

Interrupt::Interrupt() {
  if (objects++ > 0) return;
  signals_seen = 0;
  struct sigaction action {};
  for (int i = 0; i < count; ++i) {
    sigaction(handled[i], nullptr, &previous[i]);
    // nohup starts the program with SIGHUP ignored; it must stay ignored.
    const bool ignored = handled[i] == SIGHUP && previous[i].sa_handler == SIG_IGN;
    action.sa_handler = ignored ? SIG_IGN : note_signal;
    sigaction(handled[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  if (--objects > 0) return;
  for (int i = 0; i < count; ++i) sigaction(handled[i], &previous[i], nullptr);
}

bool Interrupt::requested() const { return signals_seen > 0; }

}  // namespace calque
