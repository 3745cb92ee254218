// LineReader: the lines of a text file, plain or gzip alike, as a stream of constant memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

struct gzFile_s;

namespace calque {

class LineReader {
 public:
  explicit LineReader(std::filesystem::path path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its line feed (a carriage return before it stays); false at the end. The view holds
  // until the next call. A damaged gzip file, or a line over 16 MB (which is no text), is a UserError.
  bool next(std::string_view& line);

  int64_t line_number() const { return line_number_; }  // of the line that next() gave last, from 1
  int64_t bytes_read() const;                           // of the file as it lies on the disk
  const std::filesystem::path& path() const { return path_; }

 private:
  bool fill();

  std::filesystem::path path_;
  gzFile_s* file_;
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been given yet
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

}  // namespace calque
