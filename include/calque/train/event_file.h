// EventFile: scalars for TensorBoard, in its own event format (length, checksum, protobuf message, checksum).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace calque {

class EventFile {
 public:
  // Begins a new file in `folder`; TensorBoard reads all files of a folder as one.
  explicit EventFile(const std::filesystem::path& folder);
  void add(int64_t step, const std::string& tag, double value);
  void add_line(const nlohmann::json& metrics);  // all numbers of a line of metrics

 private:
  void write_record(const std::string& message);
  std::filesystem::path path_;
  std::ofstream file_;
};

uint32_t crc32c(const std::string& bytes);  // Castagnoli's, which the format asks for

}  // namespace calque
