// Gguf: the file format of llama.cpp, metadata and tensors in one file. Reading trusts nothing in it.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/base/file.h"
#include "calque/convert/quantised.h"
#include "calque/convert/safetensors.h"

namespace calque {

class Gguf {
 public:
  explicit Gguf(const std::filesystem::path& path);

  struct Entry {
    const BlockType* type;  // null: one that is not read here
    uint32_t type_number;
    std::vector<int64_t> shape;  // as LibTorch has it, the last dimension the fastest
    uint64_t offset;             // of its bytes in the file
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

// `metadata` as in Gguf: whole numbers are written as 32 bits, others as 32-bit floats, lists by their first
// element. Matrices in `type` (F32, F16, Q8_0), vectors in F32. Atomically.
void write_gguf(const std::filesystem::path& path, const nlohmann::ordered_json& metadata,
                const NamedTensors& tensors, const BlockType& type);

}  // namespace calque
