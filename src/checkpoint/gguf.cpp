#include "calque/checkpoint/gguf.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <limits>

#include "calque/base/byte_reader.h"
#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr char gguf_magic[4] = {'G', 'G', 'U', 'F'};
constexpr uint64_t max_nesting = 4, gguf_alignment = 32;

enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

std::string read_text(ByteReader& reader) {
  const auto size = reader.value<uint64_t>();
  return std::string(reader.take(size));
}

json read_value(ByteReader& reader, ValueType type, uint64_t depth) {
  switch (type) {
    case ValueType::u8:
      return reader.value<uint8_t>();
    case ValueType::i8:
      return reader.value<int8_t>();
    case ValueType::u16:
      return reader.value<uint16_t>();
    case ValueType::i16:
      return reader.value<int16_t>();
    case ValueType::u32:
      return reader.value<uint32_t>();
    case ValueType::i32:
      return reader.value<int32_t>();
    case ValueType::f32:
      return reader.value<float>();
    case ValueType::boolean:
      return reader.value<uint8_t>() != 0;
    case ValueType::text:
      return read_text(reader);
    case ValueType::u64:
      return reader.value<uint64_t>();
    case ValueType::i64:
      return reader.value<int64_t>();
    case ValueType::f64:
      return reader.value<double>();
    case ValueType::list: {
      const auto element = static_cast<ValueType>(reader.value<uint32_t>());
      const auto count = reader.value<uint64_t>();
      if (depth >= max_nesting)
        reader.fail(fmt::format("lists are nested more than {} levels deep", max_nesting));
      if (count > reader.left())
        reader.fail("a list is longer than the file");  // each element takes at least one byte
      json all = json::array();
      for (uint64_t i = 0; i < count; ++i) all.push_back(read_value(reader, element, depth + 1));
      return all;
    }
  }
  reader.fail(fmt::format("unknown value type {}", static_cast<uint32_t>(type)));
}

}  // namespace

bool is_gguf(const std::filesystem::path& path) {
  const MappedFile file(path);
  return file.size() >= sizeof gguf_magic && file.bytes().substr(0, 4) == std::string_view(gguf_magic, 4);
}

Gguf::Gguf(const std::filesystem::path& path) : path_(path), file_(std::make_shared<MappedFile>(path)) {
  ByteReader reader(file_->bytes(), path.string() + ": not a valid GGUF file");
  if (reader.take(4) != std::string_view(gguf_magic, 4)) reader.fail("it does not begin with \"GGUF\"");
  const auto version = reader.value<uint32_t>();
  if (version != 2 && version != 3)
    reader.fail(fmt::format("version {} is not supported, expected 2 or 3", version));
  const auto tensors = reader.value<uint64_t>(), values = reader.value<uint64_t>();
  if (tensors > reader.left() / 24 || values > reader.left() / 12)  // mutate: coarse; each entry is checked
    reader.fail(fmt::format("its header claims {} tensors and {} metadata values, too many for {} bytes",
                            tensors, values, file_->size()));
  for (uint64_t i = 0; i < values; ++i) {
    const std::string key = read_text(reader);
    if (metadata_.contains(key)) reader.fail(fmt::format("duplicate metadata key {}", shorten(key, 60)));
    const auto type = static_cast<ValueType>(reader.value<uint32_t>());
    metadata_[key] = read_value(reader, type, 0);
  }
  uint64_t alignment = gguf_alignment;
  if (metadata_.contains("general.alignment")) {
    const json& given = metadata_["general.alignment"];
    if (!given.is_number_unsigned() || given.get<uint64_t>() == 0 || given.get<uint64_t>() > 1'000'000)
      reader.fail("general.alignment: expected an integer from 1 to 1000000");
    alignment = given.get<uint64_t>();
  }
  std::vector<std::pair<std::string, uint64_t>> bytes;  // name and data size of each tensor
  for (uint64_t i = 0; i < tensors; ++i) {
    const std::string name = read_text(reader), shown = shorten(name, 60);
    const auto dimensions = reader.value<uint32_t>();
    if (dimensions > 4) reader.fail(fmt::format("{}: {} dimensions, expected at most 4", shown, dimensions));
    Entry entry{};
    uint64_t count = 1;
    for (uint32_t d = 0; d < dimensions; ++d) {
      const auto size = reader.value<uint64_t>();
      if (size == 0 || size > (uint64_t{1} << 40) / count)
        reader.fail(fmt::format("{}: invalid shape: a size is 0 or the product is above 2^40", shown));
      count *= size;
      entry.shape.insert(entry.shape.begin(), static_cast<int64_t>(size));
    }
    entry.type_number = reader.value<uint32_t>();
    entry.type = find_block_type(entry.type_number);
    entry.offset = reader.value<uint64_t>();
    uint64_t size = 0;
    if (entry.type != nullptr) {
      const auto in_block = static_cast<uint64_t>(entry.type->values);
      if (!entry.shape.empty() && static_cast<uint64_t>(entry.shape.back()) % in_block != 0)
        reader.fail(fmt::format("{}: row length {} is not a multiple of the block size {}", shown,
                                entry.shape.back(), in_block));
      if (entry.shape.empty() && in_block != 1)
        reader.fail(fmt::format("{}: a scalar cannot have a block type", shown));
      size = count / in_block * static_cast<uint64_t>(entry.type->bytes);
    }
    if (!entries_.emplace(name, entry).second) reader.fail(fmt::format("duplicate tensor {}", shown));
    bytes.emplace_back(name, size);
  }
  const uint64_t begin = (reader.at() + alignment - 1) / alignment * alignment;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, size] : bytes) {
    Entry& entry = entries_.at(name);
    if (begin > file_->size() || entry.offset > file_->size() - begin ||
        size > file_->size() - begin - entry.offset || entry.offset % alignment != 0)
      reader.fail(fmt::format("{}: its data lies outside the file or is not aligned", shorten(name, 60)));
    ranges.emplace_back(entry.offset, entry.offset + size);
    entry.offset += begin;
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) reader.fail("tensors overlap");
  }
}

torch::Tensor Gguf::tensor(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError(fmt::format("{}: no tensor {}", path_.string(), name));
  const Entry& entry = found->second;
  if (entry.type == nullptr) {
    throw UserError(fmt::format("{}: {}: ggml type {} is not supported", path_.string(), shorten(name, 60),
                                entry.type_number),
                    "supported types: " + block_type_names());
  }
  const torch::Tensor values = torch::empty(entry.shape, torch::kFloat32);
  const auto bytes = static_cast<uint64_t>(values.numel() / entry.type->values * entry.type->bytes);
  dequantise(*entry.type, file_->bytes().substr(entry.offset, bytes),
             {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
  return values;
}

namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& to, const std::string& text) {
  put<uint64_t>(to, text.size());
  to += text;
}

ValueType type_of(const ordered_json& value) {
  if (value.is_array()) return ValueType::list;
  if (value.is_string()) return ValueType::text;
  if (value.is_boolean()) return ValueType::boolean;
  if (value.is_number_float()) return ValueType::f32;
  return value.is_number_unsigned() || value.get<int64_t>() >= 0 ? ValueType::u32 : ValueType::i32;
}

void put_value(std::string& to, const ordered_json& value, ValueType type) {
  switch (type) {
    case ValueType::text:
      return put_text(to, value.get<std::string>());
    case ValueType::boolean:
      return put<uint8_t>(to, value.get<bool>() ? 1 : 0);
    case ValueType::f32:
      return put(to, value.get<float>());
    case ValueType::u32:
      return put(to, value.get<uint32_t>());
    case ValueType::i32:
      return put(to, value.get<int32_t>());
    case ValueType::list: {
      // llama.cpp expects signed integers in lists (token types).
      ValueType element = value.empty() ? ValueType::i32 : type_of(value.front());
      if (element == ValueType::u32) element = ValueType::i32;
      put(to, static_cast<uint32_t>(element));
      put<uint64_t>(to, value.size());
      for (const auto& one : value) put_value(to, one, element);
      return;
    }
    default:
      throw std::runtime_error("a metadata value of this type cannot be written to GGUF");
  }
}

std::string tensor_bytes(const torch::Tensor& given, const BlockType& type) {
  const torch::Tensor tensor = given.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const std::string name = type.name;
  if (name == "Q8_0")
    return quantise_q8_0({tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  const torch::Tensor stored = name == "F16" ? tensor.to(torch::kFloat16) : tensor;
  return {static_cast<const char*>(stored.const_data_ptr()), stored.nbytes()};
}

}  // namespace

void write_gguf(const std::filesystem::path& path, const ordered_json& metadata, const NamedTensors& tensors,
                const BlockType& type) {
  std::string header(gguf_magic, 4);
  put<uint32_t>(header, 3);
  put<uint64_t>(header, tensors.size());
  put<uint64_t>(header, metadata.size());
  for (const auto& [key, value] : metadata.items()) {
    put_text(header, key);
    put(header, static_cast<uint32_t>(type_of(value)));
    put_value(header, value, type_of(value));
  }
  const BlockType& plain = *find_block_type("F32");
  std::vector<std::pair<const torch::Tensor*, const BlockType*>> order;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const bool fits = tensor.dim() >= 2 && tensor.size(-1) % type.values == 0;
    const BlockType& stored = fits ? type : plain;
    put_text(header, name);
    put<uint32_t>(header, static_cast<uint32_t>(tensor.dim()));
    for (int64_t d = tensor.dim(); d-- > 0;) put<uint64_t>(header, static_cast<uint64_t>(tensor.size(d)));
    put<uint32_t>(header, stored.number);
    put<uint64_t>(header, offset);
    const auto bytes = static_cast<uint64_t>(tensor.numel() / stored.values * stored.bytes);
    offset += (bytes + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
    order.emplace_back(&tensor, &stored);
  }
  AtomicFile file(path);
  const auto pad = [&] {
    const uint64_t rest = file.size() % gguf_alignment;
    if (rest != 0) file.write(std::string(gguf_alignment - rest, '\0'));
  };
  file.write(header);
  pad();
  for (const auto& [tensor, stored] : order) {
    file.write(tensor_bytes(*tensor, *stored));
    pad();
  }
  file.commit();
}

}  // namespace calque
