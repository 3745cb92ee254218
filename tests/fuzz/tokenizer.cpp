// Fuzz target: tokenizer files of every kind, and what they make of a line.
#include "calque/data/tokenizer.h"

#include "calque/checkpoint/formats.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file(data, size, [](const std::filesystem::path& file) {
    const auto tokenizer = calque::Tokenizer::from_bytes(calque::convert_tokenizer(file, 1, 2), "input");
    const auto ids = tokenizer.encode("L'élève a lu 12 pages, <s> n'est-ce pas ?\n\t😀");
    tokenizer.decode(ids);
    for (int32_t id = 0; id < tokenizer.size(); ++id) tokenizer.decode(std::vector<int32_t>{id});
  });
}
