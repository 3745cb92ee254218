// Fuzz target: a corpus, plain or gzip-compressed, read as a TSV of pairs, as two files and as text, and what
// `calque data check` says of it.
#include "calque/data/corpus.h"

#include "calque/base/unicode.h"
#include "calque/data/data_check.h"
#include "fuzz.h"

namespace {

void read_all(const calque::CorpusPart& part) {
  try {
    calque::PairReader reader(part);
    for (calque::SentencePair pair; reader.next(pair);) {
      calque::clean_text(pair.source);
      calque::clean_text(pair.target);
    }
  } catch (const calque::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file(data, size, [](const std::filesystem::path& file) {
    calque::CorpusPart pairs, columns, two_files, text;
    pairs.pairs = columns.pairs = two_files.source = two_files.target = text.text = file;
    columns.columns = {3, 1};
    for (const auto& part : {pairs, columns, two_files, text}) read_all(part);
    calque::DataConfig config;
    config.train = {columns};
    calque::check_data(config, nullptr, 3).to_json().dump();
  });
}
