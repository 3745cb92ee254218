#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "calque/cli/command.h"

namespace {

// How long threads of LibTorch's OpenMP (libgomp) spin before they sleep, where the user has not said. Its
// default is 300,000 rounds: they would spin for threads that are not running, and on the cores that our own
// thread pool wants (docs/speed.md).
constexpr const char* spin_setting = "GOMP_SPINCOUNT=2000";

bool is_setting(const char* entry, const char* name) { return strncmp(entry, name, strlen(name)) == 0; }

// With these, libgomp binds the main thread to one core, and threads that are not its own inherit that.
bool binds_threads(const char* entry) {
  return is_setting(entry, "OMP_PROC_BIND=") || is_setting(entry, "OMP_PLACES=") ||
         is_setting(entry, "GOMP_CPU_AFFINITY=");
}

// libgomp reads its settings when it is loaded, before main() and every constructor of ours. This runs still
// earlier, when nothing of LibTorch has been initialised yet, and starts the program again with the settings.
void set_openmp(int, char** arguments, char** environment) {
  constexpr size_t most = 10'000;
  static char* changed[most + 2];
  size_t count = 0, kept = 0;
  bool spinning_is_set = false;
  for (; environment[count] != nullptr; ++count) {
    if (count == most) return;
    if (is_setting(environment[count], "GOMP_SPINCOUNT=") ||
        is_setting(environment[count], "OMP_WAIT_POLICY="))
      spinning_is_set = true;
    if (!binds_threads(environment[count])) changed[kept++] = environment[count];
  }
  if (spinning_is_set && kept == count) return;
  if (!spinning_is_set) changed[kept++] = const_cast<char*>(spin_setting);
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return;
  program[length] = 0;
  execve(program, arguments, changed);  // returns only if it failed: then it goes on as it is
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which must be first themselves
__attribute__((section(".preinit_array"), used)) void (*const before_everything)(int, char**,
                                                                                 char**) = set_openmp;
#endif

}  // namespace

int main(int argc, char** argv) { return calque::cli::run(argc, argv); }
