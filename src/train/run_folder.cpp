#include "calque/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/data/line_reader.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

RunFolder::RunFolder(fs::path path, Mode mode) : path_(std::move(path)) {
  const bool begun = fs::exists(path_ / "config.yaml");
  if (mode == Mode::create && begun) {
    throw UserError(fmt::format("{}: this run exists already", path_.string()),
                    "--resume goes on with it, run=NAME makes another, --fresh deletes it and begins anew");
  }
  if (mode == Mode::resume && !begun)
    throw UserError(fmt::format("{}: there is no run to resume", path_.string()), "leave --resume out");
  std::error_code error;
  fs::create_directories(path_ / "checkpoints", error);
  if (error) throw UserError(fmt::format("{}: cannot be made: {}", path_.string(), error.message()));
  lock_ = open((path_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0)
    throw UserError(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    throw UserError(fmt::format("{}: another process is training this run", path_.string()));
  }
}

void RunFolder::clear() {
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != ".lock") fs::remove_all(entry.path());
  }
  fs::create_directories(path_ / "checkpoints");
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

void append_metrics(const fs::path& path, const json& line) {
  std::ofstream file(path, std::ios::app);
  file << line.dump() << "\n";
  if (!file.flush()) throw SystemError(path.string() + ": writing failed", errno);
}

std::vector<json> read_metrics(const fs::path& path) {
  std::vector<json> lines;
  if (!fs::exists(path)) return lines;
  LineReader reader(path);
  for (std::string_view line; reader.next(line);) {
    json value = json::parse(line, nullptr, false);
    if (value.is_object())
      lines.push_back(std::move(value));  // a last line that was cut off by a crash is not
  }
  return lines;
}

void drop_metrics_after(const fs::path& path, int64_t step) {
  std::string kept;
  for (const json& line : read_metrics(path)) {
    if (line.value("step", int64_t{0}) <= step) kept += line.dump() + "\n";
  }
  write_file(path, kept);
}

}  // namespace calque
