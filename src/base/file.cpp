#include "calque/base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/hash.h"

namespace calque {
namespace fs = std::filesystem;
namespace {

std::string display_name(const fs::path& path) { return path.string(); }

// Names this machine among those that share a file system.
const std::string& machine_name() {
  static const std::string name = [] {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    std::ifstream file("/etc/machine-id");
    std::string id;
    std::getline(file, id);
    return fmt::format("{:08x}", static_cast<uint32_t>(hash_bytes(id + " " + host)));
  }();
  return name;
}

// What stands behind names such as /dev/stdout belongs to somebody else. /dev/shm is a folder for all.
bool is_of_the_system(const fs::path& path) {
  const std::string name = path.string();
  return name.starts_with("/proc/") || (name.starts_with("/dev/") && !name.starts_with("/dev/shm/"));
}

// NAME.tmp-MACHINE-PROCESS-RANDOM
std::string temporary_suffix() {
  return fmt::format(".tmp-{}-{}-{:08x}", machine_name(), getpid(), std::random_device()());
}

// Whoever writes a temporary file holds a lock on it: process numbers mean nothing between containers. NFS
// locks only what is open for writing. Where there are no locks, the number has to do.
bool is_being_written(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return true;
  const bool is_free =
      flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL;
  close(descriptor);
  return !is_free;
}

// Removes the temporary files of this machine's killed writers.
void remove_leftovers(const fs::path& path) {
  const std::string prefix = fmt::format("{}.tmp-{}-", path.filename().string(), machine_name());
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t owner = 0;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), owner);
    if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH && !is_being_written(entry.path()))
      fs::remove(entry.path(), ignored);
  }
}

}  // namespace

int open_for_reading(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw UserError(display_name(path) + ": " + std::strerror(errno));
  struct stat status {};
  fstat(descriptor, &status);
  if (S_ISDIR(status.st_mode)) {
    close(descriptor);
    throw UserError(display_name(path) + ": is a folder; expected a file");
  }
  return descriptor;
}

void check_readable(const fs::path& path) { close(open_for_reading(path)); }

std::string read_file(const fs::path& path) {
  std::string content;
  for_each_block(path, [&](std::string_view block) { content += block; });
  return content;
}

void for_each_block(const fs::path& path, const std::function<void(std::string_view)>& use) {
  const int descriptor = open_for_reading(path);
  std::vector<char> buffer(1 << 18);
  ssize_t count = 0;
  int error = 0;
  while ((count = read(descriptor, buffer.data(), buffer.size())) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      error = errno;
      break;
    }
    use({buffer.data(), static_cast<size_t>(count)});
  }
  close(descriptor);
  if (error != 0) throw SystemError(display_name(path), error);
}

MappedFile::MappedFile(const fs::path& path) {
  const int descriptor = open_for_reading(path);
  struct stat status {};
  fstat(descriptor, &status);
  size_ = status.st_size;
  if (size_ > 0) {
    void* address = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      close(descriptor);
      throw SystemError(display_name(path) + ": cannot be memory-mapped", error);
    }
    data_ = static_cast<const char*>(address);
  }
  close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

void MappedFile::forget(size_t offset, size_t count) const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page, end = (offset + count) / page * page;
  if (end > begin) madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AtomicFile::AtomicFile(fs::path path) : path_(fs::absolute(path)) {
  std::error_code error;
  for (int links = 0; links < 40 && !is_of_the_system(path_) && fs::is_symlink(path_);
       ++links)  // a link stays
    path_ = path_.parent_path() / fs::read_symlink(path_);
  if (is_of_the_system(path_) || fs::is_symlink(path_))
    throw UserError(display_name(path) + ": is not a regular file");
  const fs::file_status status = fs::status(path_, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw UserError(display_name(path) + (fs::is_directory(status)
                                              ? ": is a folder; expected the name of a file"
                                              : ": is not a regular file"));
  }
  fs::create_directories(path_.parent_path(), error);
  if (error) throw UserError(display_name(path_.parent_path()) + ": cannot be created: " + error.message());
  remove_leftovers(path_);
  temporary_ = path_;
  temporary_ += temporary_suffix();
  descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw UserError(display_name(path) + ": cannot be written: " + std::strerror(errno));
  flock(descriptor_, LOCK_EX | LOCK_NB);  // not every file system has locks
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void AtomicFile::write(const void* bytes, size_t size) { write_at(size_, bytes, size); }

void AtomicFile::write_at(uint64_t offset, const void* bytes, size_t size) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = pwrite(descriptor_, from, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw SystemError(display_name(path_) + ": writing failed", errno);
    from += count;
    offset += count;
    size -= count;
  }
  size_ = std::max(size_, offset);
}

void AtomicFile::read_at(uint64_t offset, void* bytes, size_t size) const {
  char* to = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = pread(descriptor_, to, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw SystemError(display_name(path_) + ": reading back failed", errno);
    to += count;
    offset += count;
    size -= count;
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) throw SystemError(display_name(path_) + ": writing failed", errno);
  close(std::exchange(descriptor_, -1));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    std::error_code ignored;
    fs::remove(temporary_, ignored);
    throw SystemError(display_name(path_) + ": cannot rename the temporary file to this name", error);
  }
  sync_folder(path_.parent_path());
}

void write_file(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void sync_file(const fs::path& path) {
  const int descriptor = open_for_reading(path);
  const int error = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  if (error != 0) throw SystemError(path.string(), error);
}

void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // a folder that may be written but not read
  const int error = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  // Some file systems cannot flush folders; they say EINVAL.
  if (error != 0 && error != EINVAL) throw SystemError(folder.string() + ": writing failed", error);
}

namespace {

fs::path backup_path(const fs::path& folder) {
  return folder.parent_path() / ("." + folder.filename().string() + ".old");
}

}  // namespace

void replace_folder(const fs::path& prepared, const fs::path& folder) {
  const fs::path old = backup_path(folder);
  sync_folder(prepared);  // its entries are on disk before they have their final name
  fs::remove_all(old);
  if (!fs::exists(fs::symlink_status(folder))) {
    fs::rename(prepared, folder);
  } else if (renameat2(AT_FDCWD, prepared.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(prepared);
  } else {
    fs::rename(folder, old);
    fs::rename(prepared, folder);
    fs::remove_all(old);
  }
  sync_folder(folder.parent_path());
}

void restore_folder(const fs::path& folder) {
  const fs::path old = backup_path(folder);
  if (fs::exists(old) && !fs::exists(fs::symlink_status(folder))) fs::rename(old, folder);
}

void link_or_copy(const fs::path& file, const fs::path& folder) {
  const fs::path to = folder / file.filename();
  std::error_code error;
  fs::create_hard_link(file, to, error);
  if (!error) return;
  fs::copy_file(file, to);
  sync_file(to);
}

void remove_folder(const fs::path& folder) {
  const fs::path away = folder.parent_path() / (".deleted-" + folder.filename().string());
  fs::remove_all(away);  // left behind by a killed process
  fs::rename(folder, away);
  sync_folder(folder.parent_path());  // before any of its files is gone
  fs::remove_all(away);
}

fs::path resolve(const fs::path& path, const fs::path& folder) {
  if (path.empty() || path.is_absolute() || folder.empty()) return path;
  return (folder / path).lexically_normal();
}

}  // namespace calque
