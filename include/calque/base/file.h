// Files: whole ones read, mapped ones viewed, and AtomicFile, which appears complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace calque {

// Refuses what is not there, a folder, or not readable, with a UserError that names the path.
void check_readable(const std::filesystem::path& path);

std::string read_file(const std::filesystem::path& path);

// Reads a file of any size through a buffer, a block at a time.
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

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Written beside its final name; commit() makes it durable and renames it. Destroyed before that, it leaves
// nothing; killed before that, it leaves a temporary file that the next writer of the same name removes.
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

// Makes a folder's entries durable, after files in it were renamed.
void sync_folder(const std::filesystem::path& folder);

// `path`, or `folder`/`path` where it is relative; an empty path stays empty.
std::filesystem::path resolve(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace calque
