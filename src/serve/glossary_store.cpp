#include "calque/serve/glossary_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "calque/serve/api.h"

namespace calque {
namespace {

constexpr size_t max_glossaries = 100;

// As DeepL's are: UUIDs.
std::string random_id() {
  std::random_device device;
  const auto part = [&] { return static_cast<unsigned>(device()) & 0xFFFFu; };
  return fmt::format("{:04x}{:04x}-{:04x}-4{:03x}-a{:03x}-{:04x}{:04x}{:04x}", part(), part(), part(),
                     part() >> 4, part() >> 4, part(), part(), part());
}

// The next field of a line of CSV, from `at` on, which ends behind the separator or at npos.
std::string next_field(const std::string& line, size_t& at, char separator) {
  std::string field;
  bool quoted = false;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (quoted && c == '"' && at + 1 < line.size() && line[at + 1] == '"') {
      field += '"';
      ++at;
    } else if (c == '"' && (quoted || field.empty()) && separator == ',') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      ++at;
      return field;
    } else {
      field += c;
    }
  }
  at = std::string::npos;
  return field;
}

}  // namespace

std::vector<Glossary::Term> parse_terms(const std::string& text, char separator) {
  std::vector<Glossary::Term> terms;
  std::istringstream stream(text);
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    size_t at = 0;
    Glossary::Term term;
    term.source = next_field(line, at, separator);
    if (at == std::string::npos)
      throw ApiError(400, fmt::format("entries: line {} has no translation", number), "entries");
    term.target = next_field(line, at, separator);
    if (std::max(term.source.size(), term.target.size()) > max_term_bytes)
      throw ApiError(413, fmt::format("entries: line {} is longer than {} bytes", number, max_term_bytes),
                     "entries");
    terms.push_back(std::move(term));
    if (terms.size() > max_glossary_terms)
      throw ApiError(413, fmt::format("entries: at most {} terms", max_glossary_terms), "entries");
  }
  if (terms.empty()) throw ApiError(400, "entries: there are no terms", "entries");
  return terms;
}

StoredGlossary GlossaryStore::add(const std::string& name, std::vector<Glossary::Term> terms) {
  StoredGlossary added{random_id(), name, std::time(nullptr)};
  for (const Glossary::Term& term : terms) added.term_bytes += term.source.size() + term.target.size();
  added.glossary = std::make_shared<const Glossary>(terms);
  added.terms = std::make_shared<const std::vector<Glossary::Term>>(std::move(terms));
  const std::lock_guard lock(mutex_);
  size_t bytes = added.term_bytes;
  for (const StoredGlossary& one : all_) bytes += one.term_bytes;
  while (!all_.empty() && (all_.size() >= max_glossaries || bytes > max_stored_term_bytes)) {
    bytes -= all_.front().term_bytes;
    all_.erase(all_.begin());
  }
  all_.push_back(added);
  return added;
}

std::optional<StoredGlossary> GlossaryStore::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const StoredGlossary& one) { return one.id == id; });
  return found == all_.end() ? std::nullopt : std::optional(*found);
}

std::vector<StoredGlossary> GlossaryStore::list() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

bool GlossaryStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(all_, [&](const StoredGlossary& one) { return one.id == id; }) > 0;
}

}  // namespace calque
