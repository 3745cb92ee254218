// Checks the limits of a configuration's numbers: a value at each limit is accepted, one just past it is not.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "calque/base/field.h"

namespace calque {

struct Bound {
  std::string key, accepted, refused;  // values as in YAML
};

// Every limit of every field needs a row of its own, so that a new field cannot be forgotten.
inline void expect_bounds(const Fields& fields, const std::vector<Bound>& bounds) {
  std::map<std::string, size_t> rows, limits;
  for (const Bound& bound : bounds) ++rows[bound.key];
  for (const Field& field : fields) {
    const std::string schema = field.type.starts_with("path, {") ? "" : field.schema.dump();
    for (const char* limit : {"inimum\":", "aximum\":"}) {  // also exclusiveMinimum, exclusiveMaximum
      if (schema.find(limit) != std::string::npos) ++limits[field.name];
    }
    for (const Bound& bound : bounds) {
      if (bound.key != field.name) continue;
      EXPECT_NO_THROW(field.read(YAML::Load(bound.accepted), "")) << field.name << ": " << bound.accepted;
      EXPECT_THROW(field.read(YAML::Load(bound.refused), ""), BadValue)
          << field.name << ": " << bound.refused;
    }
  }
  EXPECT_EQ(rows, limits);
}

}  // namespace calque
