// calque score-text: BLEU, chrF and TER of any translations, as sacreBLEU computes and names them.
#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/cli/command.h"
#include "calque/metrics/text_scores.h"
#include "calque/runs/evaluation.h"

namespace calque::cli {
namespace {

struct ScoreTextOptions {
  std::filesystem::path hypothesis;
  std::vector<std::filesystem::path> references;
  std::string tokenize = "13a";
  std::string smooth = "exp";
  std::optional<double> smooth_value;
  bool lowercase = false;
  ScoringOptions scoring;
  bool as_json = false;
};

template <class Enum>
Enum enum_of(const std::string& name) {
  const auto& names = EnumNames<Enum>::names;
  return static_cast<Enum>(
      std::distance(std::begin(names), std::find(std::begin(names), std::end(names), name)));
}

void run_score_text(ScoreTextOptions& options) {
  options.scoring.bleu = {enum_of<BleuTokenizer>(options.tokenize), enum_of<BleuSmoothing>(options.smooth),
                          options.smooth_value, options.lowercase, false};
  ScoredText text;
  text.hypotheses = read_lines(options.hypothesis);
  text.references.resize(text.hypotheses.size());
  for (const auto& file : options.references) {
    const auto lines = read_lines(file);
    if (lines.size() != text.hypotheses.size()) {
      throw UserError(fmt::format("{} has {} lines, {} has {}", options.hypothesis.string(),
                                  text.hypotheses.size(), file.string(), lines.size()),
                      "line n of one must be the reference of line n of the other");
    }
    for (size_t i = 0; i < lines.size(); ++i) text.references[i].push_back(lines[i]);
  }
  const TextScores scores = score_text(text, options.scoring);
  options.as_json ? print_json(scores.to_json()) : print(scores.to_text());
}

}  // namespace

void add_score_text_command(CLI::App& app) {
  static ScoreTextOptions options;
  CLI::App* command = add_command(
      app, "score-text", "Score a file of translations with BLEU, chrF and TER, as sacreBLEU does",
      "calque score-text --hypothesis out.en --reference ref.en --metrics bleu chrf");
  command->add_option("--hypothesis", options.hypothesis, "Translations, one per line")
      ->required()
      ->type_name("FILE");
  command->add_option("--reference", options.references, "References, one or more files")
      ->required()
      ->type_name("FILE");
  command->add_option("--metrics,-m", options.scoring.metrics, "Metrics: bleu, chrf, ter")
      ->check(CLI::IsMember({"bleu", "chrf", "ter"}))
      ->capture_default_str();
  command->add_option("--tokenize", options.tokenize, "BLEU tokenizer: 13a, intl, char, none")
      ->check(CLI::IsMember({"13a", "intl", "char", "none"}))
      ->capture_default_str();
  command->add_flag("--lowercase", options.lowercase, "Ignore case in BLEU");
  command->add_option("--smooth,--smooth-method", options.smooth, "BLEU smoothing: exp, floor, add-k, none")
      ->check(CLI::IsMember({"exp", "floor", "add-k", "none"}))
      ->capture_default_str();
  command->add_option("--smooth-value", options.smooth_value,
                      "Smoothing value; default: 0.1 for floor, 1 for add-k");
  command->add_option("--chrf-word-order", options.scoring.chrf.word_order, "Word n-grams in chrF; 2: chrF++")
      ->check(CLI::Range(0, 6))
      ->capture_default_str();
  command->add_flag("--chrf-lowercase", options.scoring.chrf.lowercase, "Ignore case in chrF");
  command->add_flag("--ter-case-sensitive", options.scoring.ter.case_sensitive, "Respect case in TER");
  command
      ->add_option("--resamples,--confidence-n", options.scoring.resamples,
                   "Bootstrap resamples for the 95 % intervals; 0: none")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", options.scoring.seed, "Random seed of the resampling")->capture_default_str();
  command->add_flag("--json", options.as_json, "Print the scores as JSON");
  command->callback([] { run_score_text(options); });
}

}  // namespace calque::cli
