// Files: reading a whole file, memory-mapping it, and writing it atomically: complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace calque {

// Throws a UserError that names the path if it does not exist, is a folder or is not readable.
void check_readable(const std::filesystem::path& path);

// The same check; returns a file descriptor that the caller closes. For what can be opened only once, such as
// a named pipe.
int open_for_reading(const std::filesystem::path& path);

std::string read_file(const std::filesystem::path& path);

// Reads a file of any size through a buffer, one block at a time.
void for_each_block(const std::filesystem::path& path, const std::function<void(std::string_view)>& use);

// A file mapped into memory, read-only.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::string_view bytes() const { return {data_, size_}; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  // Gives the memory of a range back that was read and is not needed any more; reading it again is allowed.
  void forget(size_t offset, size_t count) const;

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Writes to a temporary file in the same folder; commit() flushes it to disk and renames it to its final
// name. If the object is destroyed before commit(), the temporary file is removed. If the process is killed,
// the temporary file stays until the next AtomicFile with the same name on the same machine removes it.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* bytes, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write_at(uint64_t offset, const void* bytes, size_t size);
  void read_at(uint64_t offset, void* bytes, size_t size) const;
  uint64_t size() const { return size_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

void write_file(const std::filesystem::path& path, std::string_view content);  // atomically

void sync_file(const std::filesystem::path& path);  // flushes its content to disk (fsync)
// Flushes a folder's entries to disk (fsync), after files in it were renamed.
void sync_folder(const std::filesystem::path& folder);

// Renames the folder `prepared` to `folder` and deletes the folder that had this name. The exchange is atomic
// if the file system supports it; otherwise the old folder is first renamed to a backup name, and
// restore_folder() recovers it if the replacement was interrupted.
void replace_folder(const std::filesystem::path& prepared, const std::filesystem::path& folder);
void restore_folder(const std::filesystem::path& folder);

// Deletes a folder. It loses its name first, so that an interruption leaves no half of it under that name.
void remove_folder(const std::filesystem::path& folder);

// Adds a file to a folder under the same file name: as a hard link, or as a copy if that fails.
void link_or_copy(const std::filesystem::path& file, const std::filesystem::path& folder);

// `path` if it is absolute, otherwise `folder`/`path`. An empty path stays empty.
std::filesystem::path resolve(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace calque
