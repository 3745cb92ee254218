#include "calque/data/corpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/text.h"

namespace calque {
namespace fs = std::filesystem;

Fields fields(CorpusPart& c) {
  return {
      field("pairs", c.pairs, "TSV file with one pair per line: source, tab, target"),
      field("source", c.source, "source side of two parallel files, one sentence per line"),
      field("target", c.target, "target side of two parallel files, one sentence per line"),
      field("text", c.text, "plain text for a language model, one text per line"),
      field("columns", c.columns, between(1, 1000),
            "columns of the TSV with source and target, such as [2, 4]; default: it has exactly these two"),
      field("first", c.first, at_least(0), "use only the first N pairs or lines; 0: all"),
      field("weight", c.weight, between(0.001, 1000.0),
            "how often each pair occurs per epoch; 2: twice, 0.5: in every other epoch"),
  };
}

const fs::path& CorpusPart::main_file() const {
  return !pairs.empty() ? pairs : !source.empty() ? source : text;
}

std::vector<fs::path> CorpusPart::files() const {
  if (!source.empty()) return {source, target};
  return {main_file()};
}

void check_corpus(const Corpus& corpus, const std::string& key) {
  for (const CorpusPart& part : corpus) {
    if (part.source.empty() != part.target.empty()) {
      throw UserError(fmt::format("{}: source and target must be set together; {} is missing", key,
                                  part.source.empty() ? "source" : "target"));
    }
    const int kinds = !part.pairs.empty() + !part.source.empty() + !part.text.empty();
    if (kinds != 1) {
      throw UserError(
          fmt::format("{}: expected exactly one of pairs, source and target, or text; found {}", key, kinds));
    }
    if (!part.columns.empty() && (part.columns.size() != 2 || part.pairs.empty())) {
      throw UserError(
          fmt::format("{}: columns: expected the two columns of a TSV (pairs), source and target", key),
          "for example {pairs: train.tsv, columns: [2, 4]}");
    }
    if (part.is_text() != corpus.front().is_text()) {
      throw UserError(fmt::format("{}: plain text and pairs cannot be mixed in one corpus", key));
    }
  }
}

void check_corpus_files(const Corpus& corpus, const std::string& key) {
  for (const CorpusPart& part : corpus) {
    for (const fs::path& file : part.files()) {
      if (!fs::exists(file) || fs::is_directory(file)) {
        const bool in_config = key.starts_with("data.");
        throw UserError(
            fmt::format("{}{}: {}", in_config ? key + ": " : "", file.string(),
                        fs::exists(file) ? "is a folder; expected a file" : "no such file"),
            in_config
                ? "paths in a configuration file are relative to its folder, on the command line to yours"
                : "");
      }
    }
  }
}

bool is_text(const Corpus& corpus) { return !corpus.empty() && corpus.front().is_text(); }

int64_t corpus_bytes(const Corpus& corpus) {
  int64_t bytes = 0;
  for (const CorpusPart& part : corpus) {
    for (const fs::path& file : part.files()) bytes += static_cast<int64_t>(fs::file_size(file));
  }
  return bytes;
}

namespace {

uint64_t stamp_of(const Corpus& corpus) {
  Hasher hasher;
  for (const CorpusPart& part : corpus) {
    for (const fs::path& file : part.files()) {
      struct stat status {};
      if (stat(file.c_str(), &status) != 0) throw SystemError(file.string(), errno);
      for (const timespec& time : {status.st_mtim, status.st_ctim}) {
        hasher.add_value(time.tv_sec);
        hasher.add_value(time.tv_nsec);
      }
      hasher.add_value(status.st_dev);
      hasher.add_value(status.st_ino);
      hasher.add_value(status.st_size);
    }
  }
  return hasher.value();
}

}  // namespace

uint64_t hash_corpus(const Corpus& corpus) {
  Hasher hasher;
  for (const CorpusPart& part : corpus) {
    hasher.add(!part.pairs.empty() ? "pairs" : !part.source.empty() ? "files" : "text");
    for (const fs::path& file : part.files()) hasher.add_value(hash_file(file));
    if (part.first > 0) hasher.add_value(part.first);
    for (const int64_t column : part.columns) hasher.add_value(column);
  }
  return hasher.value();
}

CorpusState corpus_state(const Corpus& corpus) {
  const uint64_t stamp = stamp_of(corpus);  // first: what changes while the files are read is noticed later
  return {hash_corpus(corpus), stamp};
}

bool has_changed(const Corpus& corpus, const CorpusState& since) {
  return stamp_of(corpus) != since.stamp && hash_corpus(corpus) != since.hash;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \r\t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \r\t") - begin + 1);
}

TsvColumns tsv_columns(const CorpusPart& part, std::string_view line) {
  TsvColumns columns;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    ++columns.found;
    const std::string_view text = line.substr(begin, end - begin);
    if (columns.found == (part.columns.empty() ? 1 : part.columns[0])) columns.source = text;
    if (columns.found == (part.columns.empty() ? 2 : part.columns[1])) columns.target = text;
    begin = end + 1;
  }
  columns.is_valid =
      part.columns.empty() ? columns.found == 2 : columns.found >= std::max(part.columns[0], part.columns[1]);
  return columns;
}

PairLineReader::PairLineReader(const CorpusPart& part)
    : part_(part),
      first_(std::make_unique<LineReader>(part.main_file())),
      second_(part.target.empty() ? nullptr : std::make_unique<LineReader>(part.target)) {}

int64_t PairLineReader::bytes_read() const {
  return first_->bytes_read() + (second_ ? second_->bytes_read() : 0);
}

namespace {

constexpr const char* check_help = "`calque data check CONFIG` lists all such lines";

void check_utf8(const fs::path& file, int64_t line, std::string_view text) {
  if (const auto byte = find_invalid_utf8(text)) {
    throw UserError(fmt::format("{}:{}: byte {} is not valid UTF-8 (0x{:02x})", file.string(), line,
                                *byte + 1, static_cast<unsigned char>(text[*byte])),
                    encoding_help(file.string()) + std::string("; ") + check_help);
  }
}

}  // namespace

bool PairLineReader::next(std::string_view& first, std::string_view& second) {
  const bool more = first_->next(first);
  if (second_ && second_->next(second) != more) {
    const auto& shorter = more ? part_.target : part_.source;
    const auto& longer = more ? part_.source : part_.target;
    throw UserError(
        fmt::format(
            "{} ends after line {}, but {} continues: the two files must have the same number of lines",
            shorter.string(), (more ? *second_ : *first_).line_number(), longer.string()),
        check_help);
  }
  return more;
}

bool parse_pair(const CorpusPart& part, int64_t line, std::string_view first, std::string_view second,
                SentencePair& pair) {
  pair = {{}, {}, line};
  if (!part.target.empty()) check_utf8(part.target, line, second);
  check_utf8(part.main_file(), line, first);
  if (!part.target.empty()) {
    pair.source = trim(first);
    pair.target = trim(second);
  } else if (part.is_text()) {
    pair.target = trim(first);
  } else if (!trim(first).empty()) {
    const TsvColumns columns = tsv_columns(part, first);
    if (!columns.is_valid) {
      const std::string expected =
          part.columns.empty() ? "2 columns (french<TAB>english)"
                               : fmt::format("at least {} columns",
                                             *std::max_element(part.columns.begin(), part.columns.end()));
      throw UserError(
          fmt::format("{}:{}: expected {}, found {}", part.pairs.string(), line, expected, columns.found),
          check_help);
    }
    pair.source = trim(columns.source);
    pair.target = trim(columns.target);
  }
  return !pair.target.empty() && (part.is_text() || !pair.source.empty());
}

PairReader::PairReader(const CorpusPart& part) : part_(part), lines_(part) {}

bool PairReader::next(SentencePair& pair) {
  if (part_.first > 0 && returned_ >= part_.first) return false;
  std::string_view first, second;
  while (lines_.next(first, second)) {
    if (parse_pair(part_, lines_.line_number(), first, second, pair)) {
      ++returned_;
      return true;
    }
    ++skipped_empty_;
  }
  return false;
}

}  // namespace calque
