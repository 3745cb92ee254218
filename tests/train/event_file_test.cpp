#include "calque/train/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "calque/base/file.h"
#include "temporary_folder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

template <class T>
T value_at(const std::string& bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Of a protobuf message, by the public description of the encoding.
struct ProtoField {
  uint64_t number, type;
  uint64_t varint = 0;
  std::string bytes = {};  // of all types but varint
};

std::vector<ProtoField> parse_message(const std::string& message) {
  std::vector<ProtoField> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    ProtoField& field = fields.emplace_back(ProtoField{key >> 3, key & 7});
    if (field.type == 0) {
      field.varint = varint();
      continue;
    }
    const size_t size = field.type == 1 ? 8 : field.type == 5 ? 4 : varint();
    field.bytes = message.substr(at, size);
    at += size;
  }
  EXPECT_EQ(at, message.size());
  return fields;
}

// The messages of an event file; every checksum must be right.
std::vector<std::string> read_records(const fs::path& path) {
  const auto unmask = [](uint32_t masked) {
    const uint32_t turned = masked - 0xA282EAD8U;
    return (turned >> 17) | (turned << 15);
  };
  const std::string file = read_file(path);
  std::vector<std::string> messages;
  for (size_t at = 0; at < file.size();) {
    const auto length = value_at<uint64_t>(file, at);
    EXPECT_EQ(unmask(value_at<uint32_t>(file, at + 8)), crc32c(file.substr(at, 8)));
    messages.push_back(file.substr(at + 12, length));
    EXPECT_EQ(unmask(value_at<uint32_t>(file, at + 12 + length)), crc32c(messages.back()));
    at += 16 + length;
  }
  return messages;
}

struct Scalar {
  uint64_t step;
  std::string tag;
  float value;
  bool operator==(const Scalar&) const = default;
};

// Event: 1 wall time, 2 step, 5 Summary; Summary: 1 Value; Value: 1 tag, 2 simple_value.
Scalar read_scalar(const std::string& message) {
  const auto event = parse_message(message);
  EXPECT_EQ(event.size(), 3U);
  EXPECT_TRUE(event[0].number == 1 && event[0].type == 1);
  EXPECT_TRUE(event[1].number == 2 && event[1].type == 0);
  EXPECT_TRUE(event[2].number == 5 && event[2].type == 2);
  const auto summary = parse_message(event[2].bytes);
  EXPECT_TRUE(summary.size() == 1 && summary[0].number == 1 && summary[0].type == 2);
  const auto value = parse_message(summary[0].bytes);
  EXPECT_EQ(value.size(), 2U);
  EXPECT_TRUE(value[0].number == 1 && value[0].type == 2);
  EXPECT_TRUE(value[1].number == 2 && value[1].type == 5);
  return {event[1].varint, value[0].bytes, value_at<float>(value[1].bytes, 0)};
}

fs::path only_file(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 1U);
  return files.front();
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST(EventFile, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);            // the check value of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
}

TEST(EventFile, ScalarsReadBack) {
  const TemporaryFolder folder;
  const std::string long_tag(200, 'x');  // lengths from 128 on take two bytes
  EventFile file(folder / "new/events");
  file.add(5, "loss", 0.25);
  file.add(70'000, long_tag, -3.5);
  const auto records = read_records(only_file(folder / "new/events"));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(read_scalar(records[1]), (Scalar{5, "loss", 0.25F}));
  EXPECT_EQ(read_scalar(records[2]), (Scalar{70'000, long_tag, -3.5F}));
}

TEST(EventFile, NameAndRecordsCarryTheTimeAndTheFirstRecordTheVersion) {
  const TemporaryFolder folder;
  const double before = seconds_now();
  EventFile file(folder.path());
  file.add(1, "loss", 1);
  const double after = seconds_now();
  const fs::path path = only_file(folder.path());
  long long milliseconds = 0;
  int process = 0;
  ASSERT_EQ(std::sscanf(path.filename().c_str(), "events.out.tfevents.%lld.%d", &milliseconds, &process), 2);
  EXPECT_EQ(process, getpid());
  EXPECT_GE(milliseconds, static_cast<long long>(before * 1000));
  EXPECT_LE(milliseconds, static_cast<long long>(after * 1000));
  const auto records = read_records(path);
  for (const std::string& record : records) {
    const auto time = parse_message(record).front();
    EXPECT_EQ(time.number, 1U);
    EXPECT_GE(value_at<double>(time.bytes, 0), before);
    EXPECT_LE(value_at<double>(time.bytes, 0), after);
  }
  const auto version = parse_message(records.front());
  ASSERT_EQ(version.size(), 2U);
  EXPECT_EQ(version[1].number, 3U);
  EXPECT_EQ(version[1].bytes, "brain.Event:2");
}

TEST(EventFile, OfALineOfMetricsTheNumbersAreAdded) {
  const TemporaryFolder folder;
  EventFile file(folder.path());
  file.add_line({{"step", 7}, {"loss", 1.5}, {"epoch", 2}, {"gradient_norm", nullptr}, {"note", "text"}});
  const auto records = read_records(only_file(folder.path()));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_THAT((std::vector<Scalar>{read_scalar(records[1]), read_scalar(records[2])}),
              ElementsAre(Scalar{7, "epoch", 2}, Scalar{7, "loss", 1.5}));
}

}  // namespace calque
