#include "calque/distributed/build_identity.h"

#include "calque/base/hash.h"

namespace calque {

std::string build_identity() {
  static const std::string own = build_identity("/proc/self/exe");
  return own;
}

std::string build_identity(const std::filesystem::path& program) { return hex(hash_file(program)); }

}  // namespace calque
