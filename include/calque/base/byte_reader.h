// ByteReader: reads values one after another from the bytes of an untrusted file. Reading past the end throws
// a UserError that names the file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace calque {

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  template <class T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T result;
    const std::string_view from = take(sizeof result);
    std::memcpy(&result, from.data(), sizeof result);
    return result;
  }
  std::string_view take(uint64_t count) {
    if (count > left()) fail("the file ends too early; it is probably truncated");
    const std::string_view result = bytes_.substr(at_, count);
    at_ += count;
    return result;
  }
  uint64_t left() const { return bytes_.size() - at_; }
  uint64_t at() const { return at_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view bytes_;
  std::string name_;
  uint64_t at_ = 0;
};

}  // namespace calque
