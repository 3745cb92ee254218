// FolderLock: keeps other processes from training the same run while it exists. The lock ends with the
// process, however that ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace calque {

class FolderLock {
 public:
  // A UserError if another process has the lock.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

// "process 123" if a process is training the run, else nothing.
std::optional<std::string> training_process(const std::filesystem::path& run);

}  // namespace calque
