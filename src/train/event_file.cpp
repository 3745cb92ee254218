#include "calque/train/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "calque/base/error.h"

namespace calque {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The few pieces of the protobuf encoding that an event needs.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
template <class T>
void put_fixed(std::string& out, int field, T value) {
  out += static_cast<char>(field << 3 | (sizeof(T) == 8 ? 1 : 5));
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
void put_text(std::string& out, int field, const std::string& text) {
  out += static_cast<char>(field << 3 | 2);
  put_varint(out, text.size());
  out += text;
}

}  // namespace

uint32_t crc32c(const std::string& bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0);
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return crc ^ 0xFFFFFFFFU;
}

EventFile::EventFile(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto milliseconds = static_cast<int64_t>(now_seconds() * 1000);
  path_ = folder / fmt::format("events.out.tfevents.{}.{}", milliseconds, getpid());
  file_.open(path_, std::ios::binary);
  std::string event;
  put_fixed(event, 1, now_seconds());
  put_text(event, 3, "brain.Event:2");  // the format's version
  write_record(event);
}

void EventFile::add(int64_t step, const std::string& tag, double value) {
  std::string scalar, summary, event;
  put_text(scalar, 1, tag);
  put_fixed(scalar, 2, static_cast<float>(value));
  put_text(summary, 1, scalar);
  put_fixed(event, 1, now_seconds());
  event += static_cast<char>(2 << 3);
  put_varint(event, static_cast<uint64_t>(step));
  put_text(event, 5, summary);
  write_record(event);
}

void EventFile::add_line(const nlohmann::json& metrics) {
  for (const auto& [name, value] : metrics.items()) {
    if (name != "step" && value.is_number())
      add(metrics.value("step", int64_t{0}), name, value.get<double>());
  }
}

void EventFile::write_record(const std::string& message) {
  const auto masked = [](const std::string& bytes) {
    const uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
  };
  const auto raw = [](auto value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  };
  const std::string length = raw(static_cast<uint64_t>(message.size()));
  file_ << length << raw(masked(length)) << message << raw(masked(message));
  if (!file_.flush()) throw SystemError(path_.string() + ": writing failed", errno);
}

}  // namespace calque
