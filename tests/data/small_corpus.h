// A small corpus and a tokenizer for it, shared by tests.
#pragma once

#include <string>

#include "calque/data/corpus.h"
#include "calque/data/tokenizer.h"
#include "temporary_folder.h"

namespace calque {

// `count` different pairs with 1 to 12 words per side.
inline std::string small_tsv(int count) {
  const char* french[] = {"le",   "chat", "mange",  "une",  "pomme", "rouge",
                          "dans", "la",   "maison", "avec", "mon",   "ami"};
  const char* english[] = {"the", "cat", "eats",  "a",    "red", "apple",
                           "in",  "the", "house", "with", "my",  "friend"};
  std::string all;
  for (int i = 0; i < count; ++i) {
    std::string source = "n" + std::to_string(i), target = "m" + std::to_string(i);
    for (int word = 0; word < i * 7 % 12; ++word) source += std::string(" ") + french[(i + word) % 12];
    for (int word = 0; word < i * 5 % 11; ++word) target += std::string(" ") + english[(i + word) % 12];
    all += source + "\t" + target + "\n";
  }
  return all;
}

inline CorpusPart tsv_part(const std::filesystem::path& path, double weight = 1) {
  CorpusPart part;
  part.pairs = path;
  part.weight = weight;
  return part;
}

// Trained once per process, on the lines of small_tsv().
inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = [] {
    TokenizerConfig config;
    config.vocabulary = 330;
    std::string lines = small_tsv(400);
    size_t at = 0;
    return Tokenizer::train(config, [&](std::string& line) {
      if (at >= lines.size()) return false;
      const size_t end = lines.find_first_of("\t\n", at);
      line = lines.substr(at, end - at);
      at = end + 1;
      return true;
    });
  }();
  return tokenizer;
}

}  // namespace calque
