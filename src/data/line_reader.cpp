#include "calque/data/line_reader.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <new>

#include "calque/base/error.h"
#include "calque/base/file.h"

namespace calque {
namespace {

constexpr size_t block_bytes = 1 << 18;  // mutate: speed only
constexpr size_t longest_line_bytes = 16 << 20;

}  // namespace

LineReader::LineReader(std::filesystem::path path) : path_(std::move(path)) {
  // Opened once: the writer of a named pipe sees a second opening as the end of its reader.
  const int descriptor = open_for_reading(path_);
  file_ = gzdopen(descriptor, "rb");
  if (file_ == nullptr) {
    close(descriptor);
    throw std::bad_alloc();
  }
  gzbuffer(file_, block_bytes);  // mutate: speed only
}

LineReader::~LineReader() { gzclose(file_); }

int64_t LineReader::bytes_read() const { return std::max<int64_t>(gzoffset(file_), 0); }

bool LineReader::next(std::string_view& line) {
  if (!read_line(line)) return false;
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (line_number_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  return true;
}

bool LineReader::read_line(std::string_view& line) {
  size_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    const size_t found = std::min(end, buffer_.size()) - begin_;
    if (found > longest_line_bytes) {
      throw UserError(fmt::format("{}:{}: a line of over 16 MB; this is not a text file", path_.string(),
                                  line_number_ + 1));
    }
    if (end != std::string::npos) {
      line = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      ++line_number_;
      return true;
    }
    if (at_end_) {
      if (begin_ == buffer_.size()) return false;
      line = std::string_view(buffer_).substr(begin_);
      begin_ = buffer_.size();
      ++line_number_;
      return true;
    }
    fill();
    searched = found;
  }
}

// Moves the unread part to the front of the buffer and appends another block.
void LineReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t size = buffer_.size();
  buffer_.resize(size + block_bytes);
  const int count = gzread(file_, buffer_.data() + size, block_bytes);
  buffer_.resize(size + std::max(count, 0));
  int code = Z_OK;
  const char* message = gzerror(file_, &code);
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    throw UserError(
        fmt::format("{}: reading failed after line {}: {}", path_.string(), line_number_, message));
  }
  at_end_ = count == 0;
}

}  // namespace calque
