#include "calque/data/data_check.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/base/units.h"

namespace calque {
namespace {

struct Kind {
  const char* name;
  bool fatal;
  const char* meaning;
};

// In the order of the report.
constexpr Kind kinds[] = {
    {"unreadable", true, "the file cannot be read"},
    {"no-pairs", true, "the corpus has no usable pair"},
    {"unequal-line-counts", true, "the two files have different numbers of lines"},
    {"invalid-utf8", true, "bytes that are not valid UTF-8"},
    {"missing-tab", true, "too few columns: expected source, tab, target"},
    {"extra-tab", true, "more than one tab: expected 2 columns (see `columns`)"},
    {"swapped-sides", true, "source and target look swapped: English source, French target"},
    {"empty-line", false, "one or both sides are empty; skipped in training"},
    {"carriage-return", false, "Windows line endings; the carriage return is removed in training"},
    {"control-character", false, "control characters in the text"},
    {"duplicate-pair", false, "the pair occurs more than once"},
    {"source-equals-target", false, "source and target are identical: not translated"},
    {"too-long", false, "longer than data.max_tokens; left out of training"},
    {"length-ratio", false, "one side is much longer than the other; possibly misaligned"},
    {"unknown-tokens", false, "byte-fallback or unknown tokens: characters that are not in the vocabulary"},
    {"valid-in-train", false, "validation sentences that also occur in the training data"},
    {"test-in-train", false, "test sentences that also occur in the training data"},
};

// Frequent words that occur in only one of the two languages.
const std::unordered_set<std::string_view> french_words = {
    "le",    "la",    "les",  "des",  "est",   "et",    "un",   "une",  "je",   "ne",    "pas",   "que",
    "qui",   "vous",  "il",   "elle", "nous",  "dans",  "avec", "du",   "de",   "ce",    "au",    "aux",
    "cette", "ces",   "mon",  "ma",   "mes",   "ses",   "leur", "plus", "tu",   "ils",   "elles", "être",
    "avoir", "était", "sont", "suis", "ai",    "très",  "où",   "à",    "mais", "comme", "tout",  "pour",
    "sur",   "sa",    "se",   "deux", "homme", "femme", "par",  "êtes"};
const std::unordered_set<std::string_view> english_words = {
    "the",  "is",  "of",   "and", "to",   "in",   "that", "it",   "you",  "was",  "with",  "he",    "she",
    "this", "are", "have", "not", "i",    "my",   "his",  "her",  "we",   "they", "do",    "did",   "don't",
    "your", "for", "at",   "be",  "what", "from", "were", "been", "will", "can",  "would", "there", "has",
    "had",  "an",  "a",    "i'm", "it's", "him",  "who",  "how",  "two",  "man",  "woman", "by",    "their"};

struct WordCount {
  int64_t words = 0;
  int french = 0;
  int english = 0;
};

WordCount count_words(std::string_view text) {
  WordCount count;
  std::string lower;
  const auto finish = [&] {
    if (lower.empty()) return;
    ++count.words;
    count.french += french_words.contains(lower);
    count.english += english_words.contains(lower);
    lower.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0 || c == '\'') {
      lower += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    } else {
      finish();
    }
  }
  finish();
  return count;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// True for characters below U+0020 (except a tab and a final carriage return), DEL, the C1 controls and a
// byte order mark.
bool has_control_character(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const char32_t point = next_code_point(text, at);
    if ((point < 0x20 && point != '\t' && point != '\r') || (point >= 0x7F && point < 0xA0) ||
        point == 0xFEFF)
      return true;
    if (point == '\r' && at != text.size()) return true;
  }
  return false;
}

// True if one length is more than 2.5 times the other. `slack` allows larger ratios for short sentences.
bool ratio_looks_wrong(int64_t a, int64_t b) {
  constexpr double slack = 12;
  const double ratio = (static_cast<double>(a) + slack) / (static_cast<double>(b) + slack);
  return ratio > 2.5 || ratio < 1 / 2.5;
}

class Checker {
 public:
  Checker(const DataConfig& config, const Tokenizer* tokenizer, size_t max_examples, int threads)
      : config_(config), tokenizer_(tokenizer), max_examples_(max_examples), threads_(threads) {}

  DataReport run() {
    int64_t bytes = 0;  // mutate: display only
    const std::pair<const char*, const Corpus*> splits[] = {
        {"train", &config_.train}, {"valid", &config_.valid}, {"test", &config_.test}};
    for (const auto& [name, corpus] : splits) {
      check_corpus(*corpus, std::string("data.") + name);
      bytes += corpus_bytes(*corpus);  // mutate: display only
    }
    Progress progress("checking", bytes, "bytes");
    progress_ = &progress;
    for (const auto& [name, corpus] : splits) {
      if (!corpus->empty()) check_split(name, *corpus);
    }
    return finish();
  }

 private:
  void found(const char* kind, const std::filesystem::path& file, int64_t line, std::string_view text,
             int64_t count = 1) {
    DataFinding& finding = findings_[kind];
    finding.count += count;
    if (finding.examples.size() < max_examples_)
      finding.examples.push_back({file.string(), line, shorten(text, 100)});
  }

  void check_split(const std::string& name, const Corpus& corpus) {
    split_ = {name, 0, 0, 0};
    seen_pairs_.clear();
    for (const CorpusPart& part : corpus) {
      try {
        check_part(part);
      } catch (const UserError& error) {
        found("unreadable", part.main_file(), 0, error.what());
      }
    }
    finish_pending();
    if (split_.pairs == 0) found("no-pairs", corpus.front().main_file(), 0, "data." + name);
    report_.pairs += split_.pairs;
    report_.splits.push_back(split_);
  }

  void check_part(const CorpusPart& part) {
    LineReader first(part.main_file());
    std::optional<LineReader> second;
    if (!part.target.empty()) second.emplace(part.target);
    int64_t reported_bytes = 0;  // mutate: display only
    const int64_t pairs_before = split_.pairs;
    while (part.first == 0 || split_.pairs - pairs_before < part.first) {
      std::string_view line, other;
      const bool more = first.next(line);
      const bool other_more = second ? second->next(other) : more;
      if (!more && !other_more) break;
      if (more != other_more) {
        int64_t extra_lines = 0;
        LineReader& longer = more ? first : *second;
        do ++extra_lines;
        while (longer.next(line));
        found("unequal-line-counts", longer.path(), (more ? *second : first).line_number() + 1,
              fmt::format("{} has {} more lines than {}", longer.path().filename().string(), extra_lines,
                          (more ? part.target : part.source).filename().string()));
        break;
      }
      check_line(part, first, line, second ? &*second : nullptr, other);
      if (first.line_number() % 4096 == 0) {                                           // mutate: display only
        const int64_t now = first.bytes_read() + (second ? second->bytes_read() : 0);  // mutate: display only
        progress_->advance(now - reported_bytes);                                      // mutate: display only
        reported_bytes = now;                                                          // mutate: display only
      }
    }
  }

  bool valid_utf8(const LineReader& reader, std::string_view line) {
    const auto byte = find_invalid_utf8(line);
    if (!byte) return true;
    found("invalid-utf8", reader.path(), reader.line_number(),
          fmt::format("byte {} (0x{:02x}): {}", *byte + 1, static_cast<unsigned char>(line[*byte]), line));
    return false;
  }

  void check_line(const CorpusPart& part, const LineReader& first, std::string_view line,
                  const LineReader* second, std::string_view other) {
    const auto here = [&](const char* kind, std::string_view text) {
      found(kind, first.path(), first.line_number(), text);
    };
    const bool both_valid = valid_utf8(first, line);
    if ((second != nullptr && !valid_utf8(*second, other)) || !both_valid) return;
    if (line.ends_with('\r')) here("carriage-return", line);
    if (other.ends_with('\r')) found("carriage-return", second->path(), second->line_number(), other);
    if (has_control_character(line)) here("control-character", line);
    if (second != nullptr && has_control_character(other))
      found("control-character", second->path(), second->line_number(), other);

    std::string_view source, target;
    if (part.is_text()) {
      target = trim(line);
      if (target.empty()) return here("empty-line", line);
    } else {
      if (second != nullptr) {
        source = trim(line);
        target = trim(other);
      } else {
        if (trim(line).empty()) return here("empty-line", line);
        const TsvColumns columns = tsv_columns(part, line);
        if (!columns.is_valid)
          return here(columns.found > 2 && part.columns.empty() ? "extra-tab" : "missing-tab", line);
        source = trim(columns.source);
        target = trim(columns.target);
      }
      if (source.empty() || target.empty()) return here("empty-line", fmt::format("{} | {}", source, target));
    }
    check_pair(part, first, source, target);
  }

  void check_pair(const CorpusPart& part, const LineReader& reader, std::string_view source,
                  std::string_view target) {
    const std::string both = part.is_text() ? std::string(target) : fmt::format("{} | {}", source, target);
    const auto here = [&](const char* kind) { found(kind, reader.path(), reader.line_number(), both); };
    ++split_.pairs;
    const WordCount source_words = count_words(source);
    const WordCount target_words = count_words(target);
    split_.source_words += source_words.words;
    split_.target_words += target_words.words;
    if (!seen_pairs_.insert(hash_bytes(both)).second) here("duplicate-pair");
    count_tokens(part, reader, source, target);
    if (part.is_text()) return;

    if (source == target) here("source-equals-target");
    if (ratio_looks_wrong(count_characters(source), count_characters(target))) here("length-ratio");
    const int right = source_words.french - source_words.english + target_words.english - target_words.french;
    const bool french_in_target = target_words.french > target_words.english + 1;
    const bool english_in_source = source_words.english > source_words.french + 1;
    if (right > 1) ++looks_right_;
    if (right < -1 && (french_in_target || english_in_source) && source != target) here("swapped-sides");

    if (split_.name == "train") {
      train_sources_.insert(hash_bytes(source));
      train_targets_.insert(hash_bytes(target));
    } else if (train_sources_.contains(hash_bytes(source)) || train_targets_.contains(hash_bytes(target))) {
      here(split_.name == "valid" ? "valid-in-train" : "test-in-train");
    }
  }

  // A pair that is waiting to be tokenised. Tokenisation takes most of the time, so it is done in blocks, by
  // all threads.
  struct Pending {
    std::string source, target;
    const std::filesystem::path* file;
    int64_t line;
    int64_t tokens = 0;
    int64_t unknown = 0;
  };

  void count_tokens(const CorpusPart& part, const LineReader& reader, std::string_view source,
                    std::string_view target) {
    pending_.push_back({std::string(source), std::string(target), &part.main_file(), reader.line_number()});
    if (pending_.size() == 8192) finish_pending();  // mutate: memory only
  }

  void finish_pending() {
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&] {
      constexpr size_t chunk = 64;  // mutate: speed only
      try {
        for (size_t begin; (begin = next.fetch_add(chunk)) < pending_.size();) {
          for (size_t i = begin; i < std::min(begin + chunk, pending_.size()); ++i) tokenise(pending_[i]);
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = pending_.size();
      }
    };
    {
      std::vector<std::jthread> others;
      for (int i = 1; i < threads_; ++i) others.emplace_back(work);
      work();
    }
    if (failure) std::rethrow_exception(failure);
    for (const Pending& pair : pending_) {
      const std::string both =
          pair.source.empty() ? pair.target : fmt::format("{} | {}", pair.source, pair.target);
      if (pair.tokens > config_.max_tokens) found("too-long", *pair.file, pair.line, both);
      if (pair.unknown > 0) found("unknown-tokens", *pair.file, pair.line, both, pair.unknown);
      tokens_ += pair.tokens;
      unknown_ += pair.unknown;
    }
    pending_.clear();
  }

  // Without a tokenizer, assumes three bytes per token, which is typical of a vocabulary of 8,000.
  void tokenise(Pending& pair) const {
    if (tokenizer_ == nullptr) {
      pair.tokens = static_cast<int64_t>(pair.source.size() + pair.target.size()) / 3;
      return;
    }
    for (const std::string& side : {pair.source, pair.target}) {
      for (const int32_t id : tokenizer_->encode(clean_text(side))) {
        ++pair.tokens;
        pair.unknown += id == tokenizer_->unknown_id() || tokenizer_->is_byte(id);
      }
    }
  }

  DataReport finish() {
    for (const Kind& kind : kinds) {
      const auto entry = findings_.find(kind.name);
      if (entry == findings_.end()) continue;
      DataFinding finding = std::move(entry->second);
      finding.kind = kind.name;
      finding.meaning = kind.meaning;
      finding.fatal = kind.fatal;
      // A few swapped pairs are a warning. If most pairs look swapped, the columns are in the wrong order.
      if (finding.kind == "swapped-sides") finding.fatal = finding.count > looks_right_;
      report_.findings.push_back(std::move(finding));
    }
    std::stable_partition(report_.findings.begin(), report_.findings.end(),
                          [](const DataFinding& one) { return one.fatal; });
    if (tokenizer_ != nullptr && tokens_ > 0)
      report_.unknown_rate = static_cast<double>(unknown_) / static_cast<double>(tokens_);
    return std::move(report_);
  }

  const DataConfig& config_;
  const Tokenizer* tokenizer_;
  size_t max_examples_;
  int threads_;
  Progress* progress_ = nullptr;
  std::map<std::string, DataFinding> findings_;
  std::vector<Pending> pending_;
  DataReport report_;
  DataSplit split_;
  std::unordered_set<uint64_t> seen_pairs_;  // of this split
  std::unordered_set<uint64_t> train_sources_;
  std::unordered_set<uint64_t> train_targets_;
  int64_t looks_right_ = 0;
  int64_t tokens_ = 0;
  int64_t unknown_ = 0;
};

}  // namespace

bool DataReport::fatal() const {
  return std::any_of(findings.begin(), findings.end(), [](const DataFinding& one) { return one.fatal; });
}

DataReport check_data(const DataConfig& config, const Tokenizer* tokenizer, size_t max_examples,
                      int threads) {
  check_corpus_files(config.train, "data.train");
  check_corpus_files(config.valid, "data.valid");
  check_corpus_files(config.test, "data.test");
  return Checker(config, tokenizer, max_examples, threads).run();
}

nlohmann::json DataReport::to_json() const {
  using nlohmann::json;
  json problems = json::array();
  for (const DataFinding& finding : findings) {
    json examples = json::array();
    for (const DataExample& one : finding.examples)
      examples.push_back({{"file", one.file}, {"line", one.line}, {"text", one.text}});
    problems.push_back({{"kind", finding.kind},
                        {"meaning", finding.meaning},
                        {"fatal", finding.fatal},
                        {"count", finding.count},
                        {"examples", examples}});
  }
  json counts = json::object();
  for (const DataSplit& split : splits) {
    counts[split.name] = {
        {"pairs", split.pairs}, {"source_words", split.source_words}, {"target_words", split.target_words}};
  }
  json result = {{"findings", problems}, {"pairs", pairs}, {"splits", counts}};
  if (unknown_rate) result["unknown_rate"] = *unknown_rate;
  return result;
}

std::string DataReport::to_text() const {
  std::string out;
  for (const DataSplit& split : splits) {
    out += fmt::format("{:<6} {:>12} pairs  {:>12} source words  {:>12} target words\n", split.name,
                       format_count(split.pairs), format_count(split.source_words),
                       format_count(split.target_words));
  }
  if (unknown_rate) out += fmt::format("byte-fallback and unknown tokens: {:.3f} %\n", *unknown_rate * 100);
  for (const DataFinding& finding : findings) {
    out += fmt::format("\n{:<8} {:<22} {:>9}  {}\n", finding.fatal ? "FATAL" : "warning", finding.kind,
                       format_count(finding.count), finding.meaning);
    for (const DataExample& one : finding.examples) {
      out += one.line > 0 ? fmt::format("  {}:{}: {}\n", one.file, one.line, one.text)
                          : fmt::format("  {}: {}\n", one.file, one.text);
    }
    const auto more = finding.count - static_cast<int64_t>(finding.examples.size());
    if (more > 0 && finding.kind != "unknown-tokens")
      out += fmt::format("  … and {} more\n", format_count(more));
  }
  if (findings.empty()) out += "no problems found\n";
  return out;
}

}  // namespace calque
