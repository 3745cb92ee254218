// Gguf: the file format of llama.cpp, with metadata and tensors in one file. The reader validates everything,
// because the file may be malicious.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/base/file.h"
#include "calque/checkpoint/quantised.h"
#include "calque/checkpoint/safetensors.h"

namespace calque {

class Gguf {
 public:
  explicit Gguf(const std::filesystem::path& path);

  struct Entry {
    const BlockType* type;  // null: not supported
    uint32_t type_number;
    std::vector<int64_t> shape;  // in LibTorch's order: the last dimension is contiguous
    uint64_t offset;             // of its data in the file
  };
  const nlohmann::json& metadata() const { return metadata_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }

  torch::Tensor tensor(const std::string& name) const;  // float32, dequantised

 private:
  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  nlohmann::json metadata_ = nlohmann::json::object();
  std::map<std::string, Entry> entries_;
};

bool is_gguf(const std::filesystem::path& path);  // by its first bytes

// Writes the file atomically. Metadata: integers become 32-bit integers, other numbers 32-bit floats; the
// type of a list is that of its first element. Matrices are stored in `type` (F32, F16 or Q8_0), vectors in
// F32.
void write_gguf(const std::filesystem::path& path, const nlohmann::ordered_json& metadata,
                const NamedTensors& tensors, const BlockType& type);

}  // namespace calque
