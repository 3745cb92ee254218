#include "calque/data/sequence.h"

#include "calque/base/error.h"

namespace calque {
namespace {

struct PromptParts {
  std::string before, between;
};

PromptParts parts_of_prompt(const std::string& prompt) {
  const size_t source = prompt.find("{source}"), target = prompt.find("{target}");
  if (source == std::string::npos || target == std::string::npos || target < source ||
      prompt.find("{source}", source + 1) != std::string::npos || target + 8 != prompt.size()) {
    throw UserError(
        fmt::format("model.prompt: \"{}\" must contain {{source}} once, and {{target}} once, at the end",
                    prompt),
        "for example \"French: {source} English: {target}\"");
  }
  return {prompt.substr(0, source), prompt.substr(source + 8, target - source - 8)};
}

void append(std::vector<int32_t>& all, const std::vector<int32_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// The tokenizer's normalisation may remove a newline; then its byte token is used.
std::vector<int32_t> new_line(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids = tokenizer.encode("\n");
  if (!ids.empty()) return ids;
  const auto byte = tokenizer.find("<0x0A>");
  if (!byte)
    throw UserError("the tokenizer has no <sep> and no token for a newline",
                    "set model.prompt, for example to \"French: {source} English: {target}\"");
  return {*byte};
}

std::vector<int32_t> encode_text(const Tokenizer& tokenizer, const std::string& text) {
  return text == "\n" ? new_line(tokenizer) : tokenizer.encode(text);
}

}  // namespace

void check_prompt(const std::string& prompt) {
  if (!prompt.empty()) parts_of_prompt(prompt);
}

SequenceFormat pair_format(const Tokenizer& tokenizer, const std::string& prompt) {
  SequenceFormat format;
  format.begin = {tokenizer.begin_id()};
  format.end = tokenizer.end_id();
  if (prompt.empty() && tokenizer.separator_id()) {
    format.separator = {*tokenizer.separator_id()};
    return format;
  }
  const PromptParts parts = parts_of_prompt(prompt.empty() ? "{source}\n{target}" : prompt);
  append(format.begin, encode_text(tokenizer, parts.before));
  format.separator = encode_text(tokenizer, parts.between);
  if (format.separator.empty())
    throw UserError("model.prompt: the text between {source} and {target} has no tokens",
                    "put a word between them");
  return format;
}

SequenceFormat example_format(const Tokenizer& tokenizer, const std::string& prompt,
                              const std::vector<std::pair<std::string, std::string>>& examples) {
  SequenceFormat format = pair_format(tokenizer, prompt);
  const std::vector<int32_t> before(format.begin.begin() + 1, format.begin.end()), line = new_line(tokenizer);
  format.begin.resize(1);
  for (const auto& [source, target] : examples) {
    append(format.begin, before);
    append(format.begin, tokenizer.encode(source));
    append(format.begin, format.separator);
    append(format.begin, tokenizer.encode(target));
    append(format.begin, line);
  }
  append(format.begin, before);
  format.end = line.back();
  return format;
}

SequenceFormat text_format(const Tokenizer& tokenizer) {
  return {{tokenizer.begin_id()}, {}, tokenizer.end_id()};
}

}  // namespace calque
