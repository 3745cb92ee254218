#include "calque/data/line_reader.h"

#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "calque/base/error.h"
#include "calque/base/file.h"

namespace calque {
namespace {

constexpr size_t block_bytes = 1 << 18;  // mutate: speed only
constexpr size_t longest_line_bytes = 16 << 20;
constexpr std::string_view gzip_magic = "\x1F\x8B", byte_order_mark = "\xEF\xBB\xBF";

}  // namespace

// A gzip file is one member or several, one after the other.
class LineReader::Gunzip {
 public:
  Gunzip() {
    constexpr int gzip_window = 15 + 16;  // zlib adds 16 for the header of gzip
    if (inflateInit2(&stream_, gzip_window) != Z_OK) throw std::bad_alloc();
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  bool member_ended() const { return member_ended_; }
  void start_member() {
    inflateReset(&stream_);
    member_ended_ = false;
  }

  // Takes bytes away from `from` and appends at most a block to `to`. Returns what is wrong, if anything.
  const char* append(std::string& from, std::string& to) {
    const size_t size = to.size();
    to.resize(size + block_bytes);
    stream_.next_in = reinterpret_cast<Bytef*>(from.data());
    stream_.avail_in = static_cast<uInt>(from.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to.data() + size);
    stream_.avail_out = static_cast<uInt>(block_bytes);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    from.erase(0, from.size() - stream_.avail_in);
    to.resize(to.size() - stream_.avail_out);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    member_ended_ = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return nullptr;
    return stream_.msg != nullptr ? stream_.msg : "damaged gzip data";
  }

 private:
  z_stream stream_{};
  bool member_ended_ = false;
};

// Opened once: the writer of a named pipe sees a second opening as the end of its reader.
LineReader::LineReader(std::filesystem::path path) : LineReader(open_for_reading(path), path) {}

LineReader::LineReader(int descriptor, std::filesystem::path name)
    : path_(std::move(name)), descriptor_(descriptor), is_pipe_(lseek(descriptor_, 0, SEEK_CUR) < 0) {}

LineReader::~LineReader() { close(descriptor_); }

int64_t LineReader::bytes_read() const {
  const size_t waiting = gunzip_ ? zipped_.size() : buffer_.size() - begin_;
  return is_pipe_ ? 0 : file_bytes_ - static_cast<int64_t>(waiting);
}

bool LineReader::next(std::string_view& line) {
  if (!read_line(line)) return false;
  if (line_number_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  return true;
}

bool LineReader::is_ready() {
  while (!at_end_ && buffer_.find('\n', begin_) == std::string::npos) {
    pollfd input{descriptor_, POLLIN, 0};
    if (zipped_.empty() && poll(&input, 1, 0) == 0) return false;
    if (buffer_.size() - begin_ > longest_line_bytes) return true;  // next() says what is wrong
    fill();
  }
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

// Moves the unread part to the front of the buffer and appends another block, or as much as a pipe has.
void LineReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  if (gunzip_) return append_unzipped();
  const bool at_start = file_bytes_ == 0;
  at_end_ = !append_block(buffer_);
  if (!at_start) return;
  while (!at_end_ && buffer_.size() < gzip_magic.size() && gzip_magic.starts_with(buffer_))
    at_end_ = !append_block(buffer_);
  if (!buffer_.starts_with(gzip_magic)) return;
  gunzip_ = std::make_unique<Gunzip>();
  zipped_.swap(buffer_);
  append_unzipped();
}

// Waits for at least a byte; false at the end.
bool LineReader::append_block(std::string& to) {
  const size_t size = to.size();
  to.resize(size + block_bytes);
  ssize_t count = 0;
  do {
    count = read(descriptor_, to.data() + size, block_bytes);
  } while (count < 0 && errno == EINTR);
  to.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0)
    throw UserError(fmt::format("{}: reading failed after line {}: {}", path_.string(), line_number_,
                                std::strerror(errno)));
  file_bytes_ += count;
  return count > 0;
}

void LineReader::append_unzipped() {
  const auto fail = [&](const char* reason) {
    throw UserError(
        fmt::format("{}: reading failed after line {}: {}", path_.string(), line_number_, reason));
  };
  if (gunzip_->member_ended()) {
    if (zipped_.empty()) append_block(zipped_);
    // Like gzip itself, ignores what follows the last member: tapes are filled up with zeros. Half of the
    // magic number is a member that was cut off.
    at_end_ = zipped_.empty() || !gzip_magic.starts_with(zipped_.substr(0, gzip_magic.size()));
    if (at_end_) return zipped_.clear();
    gunzip_->start_member();
  }
  if (zipped_.empty() && !append_block(zipped_)) fail("unexpected end of file");
  if (const char* problem = gunzip_->append(zipped_, buffer_)) fail(problem);
}

}  // namespace calque
