// LineInput: the lines of stdin or of files, one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/data/line_reader.h"

namespace calque::cli {

class LineInput {
 public:
  // No files: stdin, whose name is "-". Files that cannot be read are refused before anything is translated.
  explicit LineInput(std::vector<std::filesystem::path> files);

  // The next line without its line feed; nothing at the end or, unless `wait`, when a pipe has none yet.
  std::optional<std::string> next(bool wait);

  int64_t total_bytes() const { return total_bytes_; }  // of the files; 0 for pipes
  int64_t bytes_read() const;
  // Where the last line was, for messages: "notes.txt:12".
  std::string place() const;

 private:
  std::vector<std::filesystem::path> files_;
  size_t file_ = 0;
  std::unique_ptr<LineReader> reader_;
  int64_t total_bytes_ = 0;
  int64_t finished_bytes_ = 0;
};

}  // namespace calque::cli
