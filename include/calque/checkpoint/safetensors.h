// Safetensors: named tensors in one file, in the format of the `safetensors` package. The reader maps the
// file and validates everything (lengths, offsets, shapes, names), because the file may be malicious.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calque/base/file.h"

namespace calque {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class Safetensors {
 public:
  explicit Safetensors(const std::filesystem::path& path);

  struct Entry {
    torch::ScalarType type;
    std::vector<int64_t> shape;
    uint64_t begin, end;  // bytes, counted from the end of the header
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }

  // A read-only view of the mapped file, which stays mapped as long as the tensor exists. A missing name is a
  // UserError.
  torch::Tensor tensor(const std::string& name) const;
  void forget(const std::string& name) const;  // gives its memory back, once it is copied

 private:
  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  uint64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Writes the file atomically. Its bytes equal those that the `safetensors` package writes.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace calque
