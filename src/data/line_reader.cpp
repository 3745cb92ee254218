#include "calque/data/line_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>

#include "calque/base/error.h"
#include "calque/base/file.h"

namespace calque {
namespace {

constexpr size_t block_bytes = 1 << 18;
constexpr size_t longest_line_bytes = 16 << 20;

}  // namespace

LineReader::LineReader(std::filesystem::path path) : path_(std::move(path)) {
  check_readable(path_);
  file_ = gzopen(path_.c_str(), "rb");
  if (file_ == nullptr) throw SystemError(path_.string(), errno);
  gzbuffer(file_, block_bytes);
}

LineReader::~LineReader() { gzclose(file_); }

int64_t LineReader::bytes_read() const { return gzoffset(file_); }

bool LineReader::next(std::string_view& line) {
  size_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    const size_t found = std::min(end, buffer_.size()) - begin_;
    if (found > longest_line_bytes) {
      throw UserError(
          fmt::format("{}:{}: a line of over 16 MB: this is no text file", path_.string(), line_number_ + 1));
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

// Moves what is left to the front and reads another block behind it.
bool LineReader::fill() {
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
        fmt::format("{}: cannot be read on after line {}: {}", path_.string(), line_number_, message));
  }
  at_end_ = count == 0;
  return !at_end_;
}

}  // namespace calque
