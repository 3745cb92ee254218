// What distinguishes two builds of calque, whatever version they call themselves.
#pragma once

#include <filesystem>
#include <string>

namespace calque {

// A hash of this program's file.
std::string build_identity();
std::string build_identity(const std::filesystem::path& program);

}  // namespace calque
