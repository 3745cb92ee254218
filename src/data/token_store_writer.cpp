#include "token_store_writer.h"

#include <algorithm>
#include <array>

#include "token_store_file.h"

namespace calque {
namespace {

constexpr size_t buffered_bytes = 1 << 16;   // mutate: memory only; of token ids, and of records
constexpr size_t records_at_once = 1 << 14;  // mutate: memory only; records per read in sort_records()
constexpr size_t sorting_records = size_t{1} << 20;  // mutate: memory only; in the buffers of all groups

}  // namespace

TokenStoreWriter::TokenStoreWriter(const std::filesystem::path& path, uint64_t key)
    : key_(key), file_(path), unsorted_(path.string() + ".records") {
  const TokenStoreHeader header{};
  file_.write(&header, sizeof header);  // written again at the end, with its sums
}

void TokenStoreWriter::append(const void* bytes, size_t size) {
  file_.write(bytes, size);
  payload_.add(bytes, size);
}

void TokenStoreWriter::flush() {
  append(ids_.data(), ids_.size() * sizeof(int32_t));
  unsorted_->write(records_.data(), records_.size() * sizeof(PairRecord));
  ids_.clear();
  records_.clear();
}

void TokenStoreWriter::add(uint32_t part, uint32_t line, uint32_t source_tokens,
                           std::span<const int32_t> ids) {
  const auto tokens = static_cast<uint32_t>(ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  records_.push_back({tokens_, source_tokens, tokens - source_tokens, part, line});
  tokens_ += tokens;
  ++pairs_;
  ++counts_[{tokens, part}];
  const size_t bytes = std::max(ids_.size() * sizeof(int32_t), records_.size() * sizeof(PairRecord));
  if (bytes >= buffered_bytes) flush();  // mutate: memory only
}

void TokenStoreWriter::commit(bool is_text, uint64_t parts) {
  flush();
  append(std::array<char, 8>{}.data(), padded(file_.size()) - file_.size());
  const std::vector<LengthGroup> groups = sort_records();
  append(groups.data(), groups.size() * sizeof(LengthGroup));
  TokenStoreHeader header = {
      token_store_magic, token_store_version, is_text,          key_, tokens_, pairs_, groups.size(), parts,
      skipped_empty,     skipped_long,        payload_.value(), 0};
  header.header_checksum = checksum(header);
  file_.write_at(0, &header, sizeof header);
  unsorted_.reset();  // first, so that nothing is left behind beside a complete file
  file_.commit();
}

// A counting sort from the temporary file to the final one. Each group writes through a small buffer, so
// that memory depends on the number of groups, not on the number of pairs.
std::vector<LengthGroup> TokenStoreWriter::sort_records() {
  const uint64_t begin = file_.size();
  struct Target {
    uint64_t offset;
    std::vector<PairRecord> buffer;
  };
  std::vector<LengthGroup> groups;
  std::map<std::pair<uint32_t, uint32_t>, Target> targets;
  uint64_t placed = 0;
  for (const auto& [length_and_part, count] : counts_) {
    groups.push_back({length_and_part.first, length_and_part.second, placed, count});
    targets[length_and_part].offset = begin + placed * sizeof(PairRecord);
    placed += count;
  }
  const auto flush_target = [&](Target& target) {
    file_.write_at(target.offset, target.buffer.data(), target.buffer.size() * sizeof(PairRecord));
    target.offset += target.buffer.size() * sizeof(PairRecord);
    target.buffer.clear();
  };
  const size_t buffered =  // mutate: memory only
      std::clamp<size_t>(sorting_records / std::max<size_t>(groups.size(), 1), 1, 128);
  std::vector<PairRecord> chunk(records_at_once);
  for (uint64_t at = 0; at < pairs_;) {
    const size_t count = std::min<uint64_t>(records_at_once, pairs_ - at);
    unsorted_->read_at(at * sizeof(PairRecord), chunk.data(), count * sizeof(PairRecord));
    for (size_t i = 0; i < count; ++i) {
      Target& target = targets[{chunk[i].tokens(), chunk[i].part}];
      target.buffer.push_back(chunk[i]);
      if (target.buffer.size() >= buffered) flush_target(target);  // mutate: memory only
    }
    at += count;
  }
  for (auto& [key, target] : targets) flush_target(target);
  for (uint64_t at = 0; at < pairs_;) {  // read back in the final order, for the checksum
    const size_t count = std::min<uint64_t>(records_at_once, pairs_ - at);
    file_.read_at(begin + at * sizeof(PairRecord), chunk.data(), count * sizeof(PairRecord));
    payload_.add(chunk.data(), count * sizeof(PairRecord));
    at += count;
  }
  return groups;
}

}  // namespace calque
