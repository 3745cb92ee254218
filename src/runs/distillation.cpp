#include "calque/runs/distillation.h"

#include <fmt/format.h>

#include <deque>
#include <fstream>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/interrupt.h"
#include "calque/base/json.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/unicode.h"
#include "calque/base/units.h"
#include "calque/runs/folder_lock.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// The pairs of all parts of a corpus, one after another, cleaned.
class CorpusPairs {
 public:
  explicit CorpusPairs(const Corpus& corpus) : corpus_(corpus) {}

  struct Pair {
    std::string source, reference;
  };
  std::optional<Pair> next() {
    for (; part_ < corpus_.size(); ++part_, reader_.reset()) {
      if (!reader_) reader_ = std::make_unique<PairReader>(corpus_[part_]);
      if (SentencePair pair; reader_->next(pair))
        return Pair{clean_text(pair.source), clean_text(pair.target)};
      finished_bytes_ += reader_->bytes_read();
    }
    return std::nullopt;
  }
  int64_t bytes_read() const { return finished_bytes_ + (reader_ ? reader_->bytes_read() : 0); }

 private:
  const Corpus& corpus_;
  size_t part_ = 0;
  std::unique_ptr<PairReader> reader_;
  int64_t finished_bytes_ = 0;
};

// A line of translations.tsv.
struct Record {
  Fault fault = Fault::none;
  std::string source, text;

  std::string line() const { return fmt::format("{}\t{}\t{}\n", name_of(fault), source, text); }
};

std::optional<Record> parse_record(std::string_view line) {
  const size_t first = line.find('\t'), second = line.find('\t', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto& names = EnumNames<Fault>::names;
  const auto found = std::find(std::begin(names), std::end(names), line.substr(0, first));
  if (found == std::end(names)) return std::nullopt;
  return Record{static_cast<Fault>(found - std::begin(names)),
                std::string(line.substr(first + 1, second - first - 1)),
                std::string(line.substr(second + 1))};
}

class Distillation {
 public:
  Distillation(const Teacher& teacher, const RunConfig& config, const DistillOptions& options)
      : teacher_(teacher),
        config_(config),
        options_(options),
        folder_(options.runs / (config.run + "-distill")),
        choice_(options.by),
        pairs_(config_.data.train) {
    if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to translate");
    if (is_text(config.data.train)) throw UserError("data.train is plain text; pairs are needed");
    check_data_files(config.data);
    open_folder();
  }

  DistillResult run() {
    const Interrupt interrupt;
    skip_recorded();
    if (result_.pairs > 0) log::info("{} pairs are translated already", format_count(result_.pairs));
    std::ofstream records(recorded(), std::ios::app | std::ios::binary);
    Progress progress("translating",
                      std::max<int64_t>(1, corpus_bytes(config_.data.train) - pairs_.bytes_read()), "bytes");
    int64_t bytes = pairs_.bytes_read();
    const NextSource next = [&]() -> std::optional<std::string> {
      if (interrupt.requested() || !take_next()) return std::nullopt;
      return waiting_.back().source;
    };
    teacher_.translate(result_.pairs, next, [&](const std::vector<std::string>& candidates) {
      const CorpusPairs::Pair pair = waiting_.front();
      waiting_.pop_front();
      const Choice choice = choice_.choose(pair.source, pair.reference, cleaned(candidates));
      const Record record{choice.fault, pair.source, choice.text};
      records << record.line();
      if (!records.flush()) throw SystemError(recorded().string() + ": writing failed", errno);
      count(record, pair.reference);
      progress.advance(pairs_.bytes_read() - bytes);
      bytes = pairs_.bytes_read();
    });
    result_.interrupted = interrupt.requested();
    if (!result_.interrupted) publish();
    return result_;
  }

 private:
  fs::path recorded() const { return folder_ / "translations.tsv"; }

  static std::vector<std::string> cleaned(const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) all.push_back(clean_text(text));
    return all;
  }

  json provenance() const {
    return {{"teacher", teacher_.name},
            {"teacher_hash", teacher_.hash},
            {"corpus_hash", hex(hash_corpus(config_.data.train))},
            {"search", teacher_.options},
            {"choose_by", name_of(options_.by)}};
  }

  void open_folder() {
    const fs::path file = folder_ / "train.json";
    const bool exists = fs::exists(file);
    if (exists && !options_.resume && !options_.fresh)
      throw UserError(fmt::format("{}: exists already", folder_.string()),
                      "--resume continues it, run=NAME makes another, --fresh deletes it and starts again");
    if (!exists && options_.resume)
      throw UserError(fmt::format("{}: there is nothing to resume", folder_.string()), "leave --resume out");
    fs::create_directories(folder_);
    lock_.emplace(folder_);
    const json now = provenance();
    if (options_.resume) {
      const json before = parse_json_object(read_file(file), file.string());
      for (const auto& [key, value] : now.items()) {
        if (before.value(key, json()) != value)
          throw UserError(fmt::format("{}: {} has changed since it was started", folder_.string(), key),
                          "use what it was started with, or start again with --fresh");
      }
      return;
    }
    for (const char* name : {"train.json", "train.tsv", "translations.tsv", "student.yaml"})
      fs::remove(folder_ / name);
    write_file(file, now.dump(2) + "\n");
  }

  // Goes through what an earlier process has recorded. A last line that it could not finish is cut off.
  void skip_recorded() {
    if (!fs::exists(recorded())) return;
    const MappedFile file(recorded());
    const std::string_view text = file.bytes();
    size_t kept = 0;
    for (size_t end; (end = text.find('\n', kept)) != std::string_view::npos; kept = end + 1) {
      const auto record = parse_record(text.substr(kept, end - kept));
      if (!record || !take_next()) break;
      if (waiting_.back().source != record->source) break;  // taken, and translated again
      count(*record, waiting_.back().reference);
      waiting_.pop_back();
    }
    if (kept < text.size()) fs::resize_file(recorded(), kept);
    again_ = std::exchange(waiting_, {});
  }

  bool take_next() {
    if (!again_.empty()) {
      waiting_.push_back(again_.front());
      again_.clear();
      return true;
    }
    auto pair = pairs_.next();
    if (pair) waiting_.push_back(std::move(*pair));
    return pair.has_value();
  }

  std::string count_pairs() {
    CorpusPairs all(config_.data.train);
    int64_t pairs = 0;
    while (all.next()) ++pairs;
    return format_count(pairs);
  }

  void count(const Record& record, const std::string& reference) {
    ++result_.pairs;
    ++result_.faults[static_cast<size_t>(record.fault)];
    if (record.fault != Fault::none) return;
    ++result_.kept;
    result_.same_as_reference += record.text == reference;
  }

  void publish() {
    if (teacher_.sources && (take_next() || *teacher_.sources != result_.pairs))
      throw UserError(fmt::format("{} has {} lines, but data.train has {} pairs", teacher_.name,
                                  format_count(*teacher_.sources), count_pairs()),
                      "line n must be the translation of pair n; pairs with an empty side do not count");
    if (result_.kept == 0)
      throw UserError(fmt::format("none of {} translations can be used", format_count(result_.pairs)),
                      recorded().string() + " says what is wrong with each");
    result_.corpus = folder_ / "train.tsv";
    result_.student = folder_ / "student.yaml";
    AtomicFile corpus(result_.corpus);
    LineReader reader(recorded());
    for (std::string_view line; reader.next(line);) {
      const auto record = parse_record(line);
      if (record && record->fault == Fault::none) corpus.write(record->source + "\t" + record->text + "\n");
    }
    corpus.commit();
    json all = provenance();
    all["counts"] = result_.to_json();
    write_file(folder_ / "train.json", all.dump(2) + "\n");
    CorpusPart part;
    part.pairs = result_.corpus;
    part.weight = options_.weight;
    RunConfig student = config_;
    student.data.train.push_back(part);
    student.run += "-student";
    write_file(result_.student, show_config(fields(student), folder_));
  }

  Teacher teacher_;
  RunConfig config_;
  DistillOptions options_;
  fs::path folder_;
  CandidateChoice choice_;
  CorpusPairs pairs_;
  std::deque<CorpusPairs::Pair> waiting_;  // asked for, without candidates yet
  std::deque<CorpusPairs::Pair> again_;    // at most one, to ask for next
  std::optional<FolderLock> lock_;
  DistillResult result_;
};

}  // namespace

Teacher model_teacher(const ModelSource& source, const Translator& translator) {
  DecodeConfig decode = translator.config();
  decode.batch = 0;  // affects speed alone
  json options;
  for (const Field& field : fields(decode)) options[field.name] = YAML::Dump(field.write({}));
  options["precision"] = name_of(translator.decoder().packed_precision().value_or(WeightPrecision::float32));
  const bool adapted = fs::exists(source.checkpoint / "adapters.safetensors");
  const fs::path weights = source.checkpoint / (adapted ? "adapters.safetensors" : "model.safetensors");
  return {source.name, hex(hash_file(weights)), options,
          [&translator](int64_t, const NextSource& next, const Candidates& done) {
            translator.translate_lines([&](bool) { return next(); },
                                       [&](int64_t, const Translation& translation) {
                                         std::vector<std::string> candidates;
                                         for (const TranslatedText& one : translation.best) {
                                           if (one.complete) candidates.push_back(one.text);
                                         }
                                         done(candidates);
                                       });
          }};
}

Teacher file_teacher(const fs::path& file) {
  int64_t lines = 0;
  LineReader counter(file);
  for (std::string_view line; counter.next(line);) ++lines;
  return {file.filename().string(), hex(hash_file(file)), json::object(),
          [file, lines](int64_t first, const NextSource& next, const Candidates& done) {
            LineReader reader(file);
            std::string_view line;
            for (int64_t i = 0; i < first; ++i) reader.next(line);
            for (int64_t i = first; i < lines && next(); ++i) {
              reader.next(line);
              done({std::string(line)});
            }
          },
          lines};
}

json DistillResult::to_json() const {
  json all = {{"pairs", pairs}, {"kept", kept}, {"same_as_reference", same_as_reference}};
  for (size_t i = 1; i < faults.size(); ++i) all[std::string(EnumNames<Fault>::names[i])] = faults[i];
  return all;
}

std::string DistillResult::to_text() const {
  constexpr const char* labels[] = {"kept", "dropped: empty or cut off", "dropped: a copy of the source",
                                    "dropped: repeats itself", "dropped: too long or too short"};
  std::string text = fmt::format("{:<32}{:>12}\n", "pairs", format_count(pairs));
  for (size_t i = 0; i < faults.size(); ++i)
    text += fmt::format("{:<32}{:>12}\n", labels[i], format_count(faults[i]));
  return text + fmt::format("{:<32}{:>12}\n", "equal to the reference", format_count(same_as_reference));
}

DistillResult distill(const Teacher& teacher, const RunConfig& config, const DistillOptions& options) {
  return Distillation(teacher, config, options).run();
}

}  // namespace calque
