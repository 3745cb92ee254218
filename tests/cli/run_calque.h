// Runs the built program as a person would, and says what came out.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "calque/base/file.h"
#include "temporary_folder.h"

namespace calque {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

// `arguments` go through the shell, in `folder`.
inline Outcome run_calque(const TemporaryFolder& folder, const std::string& arguments,
                          const std::string& input = "") {
  folder.write("stdin", input);
  const std::string command =
      "cd '" + folder.path().string() + "' && '" CALQUE_BINARY "' " + arguments + " <stdin >stdout 2>stderr";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(folder / "stdout"),
          read_file(folder / "stderr")};
}

}  // namespace calque
