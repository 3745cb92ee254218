// Safetensors: named tensors in one file, as the `safetensors` package reads and writes them. Reading maps
// the file and trusts nothing in it: lengths, offsets, shapes and names are checked against the file's own
// size first.
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
    uint64_t begin, end;  // bytes, from the first one behind the header
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }

  // A view of the mapped file, which lives as long as the tensor does; not to be written to. A missing name
  // is a UserError.
  torch::Tensor tensor(const std::string& name) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  uint64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Atomically. The bytes are those that the `safetensors` package writes for the same tensors.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace calque
