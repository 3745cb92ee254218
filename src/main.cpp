#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "calque/cli/command.h"

namespace {

// How long threads of LibTorch's OpenMP (libgomp) spin before they sleep, where the user has not said. Its
// default is 300,000 rounds: beside other programs threads then spin for those that are not running, and
// training falls to a quarter. With 20,000 a quiet machine loses less than 1 % (docs/speed.md).
constexpr const char* spin_setting = "GOMP_SPINCOUNT=20000";

bool is_setting(const char* entry, const char* name) { return strncmp(entry, name, strlen(name)) == 0; }

// libgomp reads the setting when it is loaded, before main() and every constructor of ours. This runs still
// earlier, when nothing of LibTorch has been initialised yet, and starts the program again with the setting.
void set_spinning(int, char** arguments, char** environment) {
  size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (is_setting(environment[count], "GOMP_SPINCOUNT=") ||
        is_setting(environment[count], "OMP_WAIT_POLICY="))
      return;
  }
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return;
  program[length] = 0;
  constexpr size_t most = 10'000;
  static char* extended[most + 2];
  if (count > most) return;
  memcpy(extended, environment, count * sizeof *environment);
  extended[count] = const_cast<char*>(spin_setting);
  execve(program, arguments, extended);  // returns only if it failed: then it goes on as it is
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which must be first themselves
__attribute__((section(".preinit_array"), used)) void (*const before_everything)(int, char**,
                                                                                 char**) = set_spinning;
#endif

}  // namespace

int main(int argc, char** argv) { return calque::cli::run(argc, argv); }
