#include "calque/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

struct TypeName {
  const char* name;
  torch::ScalarType type;
};
// In the order of the safetensors package's type list, by which it sorts the tensors of a file (descending).
constexpr TypeName type_names[] = {
    {"BOOL", torch::kBool},   {"U8", torch::kUInt8},      {"I8", torch::kInt8},   {"I16", torch::kInt16},
    {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16}, {"I32", torch::kInt32}, {"F32", torch::kFloat32},
    {"F64", torch::kFloat64}, {"I64", torch::kInt64},
};

size_t type_rank(torch::ScalarType type) {
  for (size_t i = 0; i < std::size(type_names); ++i) {
    if (type_names[i].type == type) return i;
  }
  throw std::runtime_error(std::string("a tensor of type ") + c10::toString(type) +
                           " cannot be written as safetensors");
}

constexpr uint64_t max_header_bytes = 100'000'000;  // the format's own limit

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw UserError(fmt::format("{}: not a valid safetensors file: {}", path.string(), what));
}

// Parses the header and refuses duplicate keys, of which a JSON parser would silently keep one.
json parse_header(const std::filesystem::path& path, std::string_view text) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second) {
      refuse(path, fmt::format("duplicate key \"{}\" in its header", shorten(value.get<std::string>(), 60)));
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception&) {
    refuse(path, "its header is not JSON");
  }
}

}  // namespace

Safetensors::Safetensors(const std::filesystem::path& path)
    : path_(path), file_(std::make_shared<MappedFile>(path)) {
  uint64_t header_bytes = 0;
  if (file_->size() < sizeof header_bytes) refuse(path, "shorter than eight bytes");
  std::memcpy(&header_bytes, file_->data(), sizeof header_bytes);
  if (header_bytes > max_header_bytes || header_bytes > file_->size() - sizeof header_bytes) {
    refuse(path, fmt::format("a header of {} bytes is too long; file size: {} bytes, limit: {} bytes",
                             header_bytes, file_->size(), max_header_bytes));
  }
  data_begin_ = sizeof header_bytes + header_bytes;
  const uint64_t data_bytes = file_->size() - data_begin_;
  const json header = parse_header(path, file_->bytes().substr(sizeof header_bytes, header_bytes));
  if (!header.is_object()) refuse(path, "its header is not an object");

  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, value] : header.items()) {
    const std::string shown = shorten(name, 60);
    if (name == "__metadata__") {
      if (!value.is_object()) refuse(path, "__metadata__ is not an object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) refuse(path, "__metadata__: expected strings only");
        metadata_[key] = text.get<std::string>();
      }
      continue;
    }
    const auto field = [&](const char* key) { return value.is_object() ? value.value(key, json()) : json(); };
    const json dtype = field("dtype"), shape = field("shape"), offsets = field("data_offsets");
    if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2)
      refuse(path, fmt::format("{}: expected dtype, shape and data_offsets", shown));
    const auto stored = dtype.get<std::string>();
    const auto* type = std::find_if(std::begin(type_names), std::end(type_names),
                                    [&](const TypeName& one) { return stored == one.name; });
    if (type == std::end(type_names))
      refuse(path, fmt::format("{}: unknown dtype {}", shown, shorten(stored, 20)));
    Entry entry{type->type, {}, 0, 0};
    uint64_t bytes = c10::elementSize(type->type);
    for (const json& size : shape) {
      if (!size.is_number_unsigned())
        refuse(path, fmt::format("{}: shape: expected non-negative integers", shown));
      const auto count = size.get<uint64_t>();
      if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
          (count > 0 && bytes > data_bytes / count))
        refuse(path, fmt::format("{}: its shape is larger than the file", shown));
      bytes *= count;
      entry.shape.push_back(static_cast<int64_t>(count));
    }
    for (const json& offset : offsets) {
      if (!offset.is_number_unsigned())
        refuse(path, fmt::format("{}: data_offsets: expected non-negative integers", shown));
    }
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    if (entry.begin > entry.end || entry.end > data_bytes)
      refuse(path, fmt::format("{}: its data lies outside the file", shown));
    if (entry.end - entry.begin != bytes) {
      refuse(path, fmt::format("{}: its shape needs {} bytes, its offsets give {}", shown, bytes,
                               entry.end - entry.begin));
    }
    ranges.emplace_back(entry.begin, entry.end);
    entries_[name] = std::move(entry);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered)
      refuse(path, begin < covered ? "tensors overlap" : "there are bytes that belong to no tensor");
    covered = end;
  }
  if (covered != data_bytes) refuse(path, "there are bytes that belong to no tensor");
}

void Safetensors::forget(const std::string& name) const {
  const Entry& entry = entries_.at(name);
  file_->forget(data_begin_ + entry.begin, entry.end - entry.begin);
}

torch::Tensor Safetensors::tensor(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, entry] : entries_) names.push_back(known);
    throw UserError(fmt::format("{}: no tensor {}{}", path_.string(), name, did_you_mean(name, names)));
  }
  const Entry& entry = found->second;
  const char* data = file_->data() + data_begin_ + entry.begin;
  const auto options = torch::dtype(entry.type);
  if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry.type) != 0) {  // not aligned: copy instead
    const torch::Tensor copy = torch::empty(entry.shape, options);
    std::memcpy(copy.mutable_data_ptr(), data, entry.end - entry.begin);
    return copy;
  }
  return torch::from_blob(
      const_cast<char*>(data), entry.shape, [file = file_](void*) {}, options);
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, torch::Tensor>> sorted;
  for (const auto& [name, tensor] : tensors) sorted.emplace_back(name, tensor.detach().cpu().contiguous());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const size_t left = type_rank(a.second.scalar_type()), right = type_rank(b.second.scalar_type());
    return left != right ? left > right : a.first < b.first;
  });
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const auto& [name, tensor] : sorted) {
    const uint64_t end = at + tensor.nbytes();
    header[name] = {{"dtype", type_names[type_rank(tensor.scalar_type())].name},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t header_bytes = text.size();
  AtomicFile file(path);
  file.write(&header_bytes, sizeof header_bytes);
  file.write(text);
  for (const auto& [name, tensor] : sorted) file.write(tensor.const_data_ptr(), tensor.nbytes());
  file.commit();
}

}  // namespace calque
