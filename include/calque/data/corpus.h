// Corpus: the files with the sentences, in one or more weighted parts. A part is a TSV of pairs
// (source<TAB>target), two parallel files, or plain text for a language model. Files may be gzip-compressed;
// they are read as streams.
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
  int64_t first = 0;  // use only the first N pairs or lines; 0: all
  // The columns of a TSV with source and target, counted from 1. None: it has two columns, source and target.
  std::vector<int64_t> columns;

  bool is_text() const { return !text.empty(); }
  // The file to name in messages: the TSV, the source or the text.
  const std::filesystem::path& main_file() const;
  std::vector<std::filesystem::path> files() const;
};
Fields fields(CorpusPart& part);
using Corpus = std::vector<CorpusPart>;

// Throws a UserError unless every part has exactly one of pairs, source and target, or text, and the corpus
// does not mix text and pairs. `key` names the corpus in messages ("data.train").
void check_corpus(const Corpus& corpus, const std::string& key);
void check_corpus_files(const Corpus& corpus, const std::string& key);  // checks that the files exist
bool is_text(const Corpus& corpus);
int64_t corpus_bytes(const Corpus& corpus);
uint64_t hash_corpus(const Corpus& corpus);  // hash of the files' contents, kinds and order

// What a corpus is at a moment. The stamp is of the files' sizes and times: if it is still the same, nobody
// has to read the files to know that their contents are.
struct CorpusState {
  uint64_t hash = 0;
  uint64_t stamp = 0;
};
CorpusState corpus_state(const Corpus& corpus);
bool has_changed(const Corpus& corpus, const CorpusState& since);  // the contents

// One pair; for plain text the source is empty. The views are valid until the next pair is read.
struct SentencePair {
  std::string_view source;
  std::string_view target;
  int64_t line = 0;
};

// Reads the lines of one part, in order: those of its file, or of its source and target side by side.
class PairLineReader {
 public:
  explicit PairLineReader(const CorpusPart& part);
  // `second` is the target's line if there are two files. False at the end; different line counts throw a
  // UserError. The views are valid until the next call.
  bool next(std::string_view& first, std::string_view& second);
  int64_t line_number() const { return first_->line_number(); }  // of the last line read, starting at 1
  int64_t bytes_read() const;

 private:
  const CorpusPart& part_;
  std::unique_ptr<LineReader> first_;   // the TSV, the text or the source file
  std::unique_ptr<LineReader> second_;  // the target file, if there are two files
};

// The pair in such lines; returns false if it is blank or has an empty side. A wrong number of columns and
// invalid UTF-8 throw a UserError that names the line.
bool parse_pair(const CorpusPart& part, int64_t line, std::string_view first, std::string_view second,
                SentencePair& pair);

// Reads the pairs of one part, in order. Blank lines and pairs with an empty side are skipped. A wrong number
// of columns, different line counts and invalid UTF-8 throw a UserError that names the line.
class PairReader {
 public:
  explicit PairReader(const CorpusPart& part);
  bool next(SentencePair& pair);
  int64_t skipped_empty() const { return skipped_empty_; }
  int64_t bytes_read() const { return lines_.bytes_read(); }

 private:
  const CorpusPart& part_;
  PairLineReader lines_;
  int64_t skipped_empty_ = 0;
  int64_t returned_ = 0;
};

// The source and target columns of a TSV line. found: the line's number of columns.
struct TsvColumns {
  std::string_view source, target;
  int64_t found = 0;
  bool is_valid = false;  // it has the columns that the part expects
};
TsvColumns tsv_columns(const CorpusPart& part, std::string_view line);

// Removes spaces, tabs and carriage returns at both ends.
std::string_view trim(std::string_view text);

}  // namespace calque
