// What the fuzz targets share: the bytes as a file, in a folder of its own, and the one kind of refusal that
// is right.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "calque/base/error.h"

namespace calque {

// Anything but a UserError, an accepted file or a refusal within the limits of memory and time is a finding.
template <class Read>
int fuzz_file(const uint8_t* data, size_t size, const Read& read) {
  static const std::filesystem::path folder = [] {
    auto made = std::filesystem::temp_directory_path() / ("calque-fuzz-" + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    return made;
  }();
  const std::filesystem::path file = folder / "input";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    read(file);
  } catch (const UserError&) {
  }
  return 0;
}

}  // namespace calque
