// Distillation: a teacher's translations of a training corpus, for a student to learn from: the call behind
// `calque distill`. Its folder holds train.tsv, train.json (where it comes from), translations.tsv (each
// source with its translation and what is wrong with it) and student.yaml, a configuration that is ready to
// train.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/decode/translator.h"
#include "calque/runs/candidate_choice.h"
#include "calque/runs/model_source.h"

namespace calque {

// The next source; nothing at the end.
using NextSource = std::function<std::optional<std::string>()>;
// The candidates for each source, in order, the best first.
using Candidates = std::function<void(const std::vector<std::string>& candidates)>;

struct Teacher {
  std::string name;
  std::string hash;        // of its weights or its file
  nlohmann::json options;  // of its search
  // Translates from source number `first` on, counted from 0.
  std::function<void(int64_t first, const NextSource& next, const Candidates& done)> translate;
  std::optional<int64_t> sources = {};  // that it has translations of; nothing: any
};
Teacher model_teacher(const ModelSource& source, const Translator& translator);
// A translation per line, for the pairs of data.train in order. Pairs with an empty side do not count.
Teacher file_teacher(const std::filesystem::path& file);

struct DistillOptions {
  std::filesystem::path runs = "runs";
  ChooseBy by = ChooseBy::bleu;
  double weight = 1;  // of the translations in the student's training data; the original pairs have theirs
  bool resume = false, fresh = false;
};

struct DistillResult {
  bool interrupted = false;
  std::filesystem::path corpus, student;  // files
  int64_t pairs = 0, kept = 0, same_as_reference = 0;
  std::vector<int64_t> faults = std::vector<int64_t>(std::size(EnumNames<Fault>::names));

  nlohmann::json to_json() const;
  std::string to_text() const;
};

// `config`: the student's, whose data.train is translated.
DistillResult distill(const Teacher& teacher, const RunConfig& config, const DistillOptions& options);

}  // namespace calque
