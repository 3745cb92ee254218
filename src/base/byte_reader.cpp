#include "calque/base/byte_reader.h"

#include "calque/base/error.h"

namespace calque {

void ByteReader::fail(const std::string& what) const { throw UserError(name_ + ": " + what); }

}  // namespace calque
