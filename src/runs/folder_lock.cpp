#include "calque/runs/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "calque/base/error.h"
#include "calque/base/file.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

std::string lock_holder(const fs::path& lock) {
  const std::string pid = read_file(lock);
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

std::optional<std::string> training_process(const fs::path& run) {
  const fs::path file = run / ".lock";
  const int lock = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (lock < 0) return std::nullopt;
  const bool is_free = flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return is_free ? std::nullopt : std::optional(lock_holder(file));
}

FolderLock::FolderLock(const fs::path& folder) {
  const fs::path path = folder / ".lock";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw UserError(fmt::format("{}: cannot be written: {}", folder.string(), std::strerror(errno)));
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    close(file_);
    throw UserError(fmt::format("{}: {} is training this run", folder.string(), lock_holder(path)));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(file_, 0) != 0 || pwrite(file_, pid.data(), pid.size(), 0) < 0) {
    const int error = errno;
    close(file_);
    throw SystemError(path.string() + ": writing failed", error);
  }
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace calque
