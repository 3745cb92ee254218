// Fuzz target: llama2.c's model files.
#include "calque/checkpoint/formats.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file(data, size, [](const std::filesystem::path& file) {
    if (calque::is_llama2c(file)) calque::load_decoder(calque::open_import_source(file, {}));
  });
}
