// LineReader: reads the lines of a text file, plain or gzip-compressed, in constant memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace calque {

class LineReader {
 public:
  explicit LineReader(std::filesystem::path path);
  // Reads from an open descriptor, which it closes; `name` is for messages.
  LineReader(int descriptor, std::filesystem::path name);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Reads the next line without its line feed (a carriage return is kept) and the file's byte order mark;
  // returns false at the end. The view is valid until the next call. A damaged gzip file or a line over 16 MB
  // throws a UserError.
  bool next(std::string_view& line);
  // Whether next() returns at once: false if it would wait for the writer of a pipe.
  bool is_ready();

  int64_t line_number() const { return line_number_; }  // of the last line read, starting at 1
  int64_t bytes_read() const;  // of the file on disk, so compressed bytes for gzip; 0 for a pipe
  const std::filesystem::path& path() const { return path_; }

 private:
  class Gunzip;

  bool read_line(std::string_view& line);
  void fill();
  bool append_block(std::string& to);
  void append_unzipped();

  std::filesystem::path path_;
  int descriptor_;
  bool is_pipe_;
  std::string buffer_;
  size_t begin_ = 0;                // start of the unread part of buffer_
  std::string zipped_;              // what is read and not yet unzipped
  std::unique_ptr<Gunzip> gunzip_;  // for a gzip file
  bool at_end_ = false;
  int64_t line_number_ = 0;
  int64_t file_bytes_ = 0;  // read so far
};

}  // namespace calque
