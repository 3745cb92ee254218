#include "calque/cli/line_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "calque/base/error.h"
#include "calque/base/file.h"

namespace calque::cli {
namespace {

constexpr size_t longest_line = 16 << 20;

}  // namespace

LineInput::LineInput(std::vector<std::filesystem::path> files) : files_(std::move(files)) {
  if (files_.size() == 1 && files_.front() == "-") files_.clear();
  for (auto& file : files_) {
    if (file == "-") file = "/dev/stdin";
    if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file) &&
        !std::filesystem::is_directory(file))
      continue;  // a pipe is read once, and its size is not known
    if (!std::filesystem::exists(file) && file.string().find(' ') != std::string::npos)
      throw UserError(fmt::format("{}: no such file", file.string()),
                      "a sentence comes from stdin: echo 'Bonjour.' | calque translate MODEL");
    check_readable(file);
    total_bytes_ += static_cast<int64_t>(std::filesystem::file_size(file));
  }
}

std::optional<std::string> LineInput::next(bool wait) {
  return files_.empty() ? next_of_stdin(wait) : next_of_files();
}

std::optional<std::string> LineInput::next_of_files() {
  while (file_ < files_.size()) {
    if (!reader_) reader_ = std::make_unique<LineReader>(files_[file_]);
    std::string_view line;
    if (reader_->next(line)) return std::string(line);
    finished_bytes_ += reader_->bytes_read();
    reader_.reset();
    ++file_;
  }
  return std::nullopt;
}

std::optional<std::string> LineInput::next_of_stdin(bool wait) {
  for (;;) {
    const size_t end = buffer_.find('\n', begin_);
    if (end != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      const size_t stop = std::min(end, buffer_.size());
      std::string line = buffer_.substr(begin_, stop - begin_);
      begin_ = std::min(stop + 1, buffer_.size());
      ++stdin_lines_;
      return line;
    }
    if (at_end_) return std::nullopt;
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > longest_line)
      throw UserError(fmt::format("stdin:{}: a line of over 16 MB: this is not text", stdin_lines_ + 1));
    if (!wait) {
      pollfd ready{STDIN_FILENO, POLLIN, 0};
      if (poll(&ready, 1, 0) == 0) return std::nullopt;
    }
    char block[65536];
    const ssize_t got = read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError(fmt::format("stdin: {}", std::strerror(errno)));
    at_end_ = got == 0;
    buffer_.append(block, static_cast<size_t>(got));
  }
}

int64_t LineInput::bytes_read() const { return finished_bytes_ + (reader_ ? reader_->bytes_read() : 0); }

std::string LineInput::place() const {
  return reader_ ? fmt::format("{}:{}", files_[file_].string(), reader_->line_number())
                 : fmt::format("stdin:{}", stdin_lines_);
}

}  // namespace calque::cli
