// Corpus: where the sentences come from. A part is a TSV of pairs (source<TAB>target), two parallel files, or
// plain text for a language model; plain or gzip; several parts with weights make a corpus. Read as a stream.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/field.h"
#include "calque/data/line_reader.h"

namespace calque {

struct CorpusPart {
  std::filesystem::path pairs;
  std::filesystem::path source;
  std::filesystem::path target;
  std::filesystem::path text;
  double weight = 1;
  int64_t first = 0;  // only so many pairs or lines from its beginning; 0: all

  bool is_text() const { return !text.empty(); }
  // The file that a message names: the TSV, the source, or the text.
  const std::filesystem::path& main_file() const;
  std::vector<std::filesystem::path> files() const;
};
Fields fields(CorpusPart& part);
using Corpus = std::vector<CorpusPart>;

// Exactly one of pairs, source and target, text; a weight above zero; text and pairs are not mixed. `key`
// names the corpus in messages («data.train»).
void check_corpus(const Corpus& corpus, const std::string& key);
bool is_text(const Corpus& corpus);
int64_t corpus_bytes(const Corpus& corpus);
uint64_t hash_corpus(const Corpus& corpus);  // of the files' content, their kind and their order

// One pair as it stands in the corpus; for plain text the source is empty. The views hold until the next one
// is read.
struct SentencePair {
  std::string_view source;
  std::string_view target;
  int64_t line = 0;
};

// The pairs of one part, in order. Blank lines and pairs with an empty side are passed over; what cannot be
// read as pairs (columns, line counts, invalid UTF-8) is a UserError that names the line.
class PairReader {
 public:
  explicit PairReader(const CorpusPart& part);
  bool next(SentencePair& pair);
  int64_t skipped_empty() const { return skipped_empty_; }
  int64_t bytes_read() const;

 private:
  bool read_line(SentencePair& pair);

  const CorpusPart& part_;
  std::unique_ptr<LineReader> first_;   // the TSV, the text, or the source
  std::unique_ptr<LineReader> second_;  // the target of two files
  int64_t skipped_empty_ = 0;
  int64_t given_ = 0;
};

// Without the carriage return and the blanks at both ends.
std::string_view trim(std::string_view text);

}  // namespace calque
