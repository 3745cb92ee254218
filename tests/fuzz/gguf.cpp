// Fuzz target: GGUF files, read as a model with its tokenizer where they can be, and every tensor alone.
#include "calque/checkpoint/gguf.h"

#include "calque/checkpoint/formats.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file(data, size, [](const std::filesystem::path& file) {
    const calque::Gguf opened(file);
    for (const auto& [name, entry] : opened.entries()) {
      try {
        opened.tensor(name);
      } catch (const calque::UserError&) {
      }
    }
    const calque::ImportSource source = calque::open_import_source(file);
    if (source.problems.empty()) calque::load_decoder(source);
  });
}
