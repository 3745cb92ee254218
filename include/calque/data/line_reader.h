// LineReader: reads the lines of a text file, plain or gzip-compressed, in constant memory.
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

  // Reads the next line without its line feed (a carriage return is kept) and the file's byte order mark;
  // returns false at the end. The view is valid until the next call. A damaged gzip file or a line over 16 MB
  // throws a UserError.
  bool next(std::string_view& line);

  int64_t line_number() const { return line_number_; }  // of the last line read, starting at 1
  int64_t bytes_read() const;  // of the file on disk, so compressed bytes for gzip; 0 for a pipe
  const std::filesystem::path& path() const { return path_; }

 private:
  bool read_line(std::string_view& line);
  void fill();

  std::filesystem::path path_;
  gzFile_s* file_;
  std::string buffer_;
  size_t begin_ = 0;  // start of the unread part of buffer_
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

}  // namespace calque
