// Fuzz target: safetensors files, every tensor read.
#include "calque/checkpoint/safetensors.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file(data, size, [](const std::filesystem::path& file) {
    const calque::Safetensors opened(file);
    for (const auto& [name, entry] : opened.entries()) opened.tensor(name).clone();
  });
}
