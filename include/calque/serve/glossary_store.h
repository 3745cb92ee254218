// GlossaryStore: the glossaries that clients have added, in memory. From any thread.
#pragma once

#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "calque/decode/glossary.h"

namespace calque {

struct StoredGlossary {
  std::string id, name;
  std::time_t created = 0;
  size_t term_bytes = 0;
  std::shared_ptr<const std::vector<Glossary::Term>> terms = {};  // in the order in which they were given
  std::shared_ptr<const Glossary> glossary = {};                  // made of them, once
};

inline constexpr size_t max_glossary_terms = 10'000, max_term_bytes = 1024;
inline constexpr size_t max_stored_term_bytes = 32 << 20;  // of all glossaries together

class GlossaryStore {
 public:
  // Gives it an id. The oldest are dropped where there are too many, or too many terms.
  StoredGlossary add(const std::string& name, std::vector<Glossary::Term> terms);
  std::optional<StoredGlossary> find(const std::string& id) const;
  std::vector<StoredGlossary> list() const;  // the oldest first
  bool remove(const std::string& id);

 private:
  mutable std::mutex mutex_;
  std::vector<StoredGlossary> all_;
};

// One term per line, source and target separated by `separator` (a tab or a comma; fields may be quoted as in
// CSV). A line without it is an ApiError.
std::vector<Glossary::Term> parse_terms(const std::string& text, char separator);

}  // namespace calque
