#include "calque/cli/line_input.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "calque/base/error.h"
#include "calque/base/file.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

bool is_stdin(const fs::path& file) { return file == "-"; }

// What is left of stdin where it is a file: `calque translate RUN < a.txt`.
int64_t stdin_bytes() {
  struct stat status {};
  const bool is_file = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? std::max<int64_t>(0, status.st_size - lseek(STDIN_FILENO, 0, SEEK_CUR)) : 0;
}

// A pipe is read once, and its size is not known.
bool is_pipe(const fs::path& file) {
  return fs::exists(file) && !fs::is_regular_file(file) && !fs::is_directory(file);
}

std::unique_ptr<LineReader> open(const fs::path& file) {
  if (!is_stdin(file)) return std::make_unique<LineReader>(file);
  const int descriptor = dup(STDIN_FILENO);
  if (descriptor < 0) throw SystemError("stdin", errno);
  return std::make_unique<LineReader>(descriptor, "stdin");
}

}  // namespace

LineInput::LineInput(std::vector<fs::path> files) : files_(std::move(files)) {
  if (files_.empty()) files_.emplace_back("-");
  for (const auto& file : files_) {
    if (is_stdin(file)) total_bytes_ += stdin_bytes();
    if (is_stdin(file) || is_pipe(file)) continue;
    if (!fs::exists(file) && file.string().find(' ') != std::string::npos)
      throw UserError(fmt::format("{}: no such file", file.string()),
                      "a sentence comes from stdin: echo 'Bonjour.' | calque translate MODEL");
    check_readable(file);
    total_bytes_ += static_cast<int64_t>(fs::file_size(file));
  }
}

std::optional<std::string> LineInput::next(bool wait) {
  while (file_ < files_.size()) {
    if (!reader_) reader_ = open(files_[file_]);
    if (!wait && !reader_->is_ready()) return std::nullopt;
    std::string_view line;
    if (reader_->next(line)) return std::string(line);
    finished_bytes_ += reader_->bytes_read();
    reader_.reset();
    ++file_;
  }
  return std::nullopt;
}

int64_t LineInput::bytes_read() const { return finished_bytes_ + (reader_ ? reader_->bytes_read() : 0); }

std::string LineInput::place() const {
  return reader_ ? fmt::format("{}:{}", reader_->path().string(), reader_->line_number()) : "";
}

}  // namespace calque::cli
