// Translating, evaluating, comparing and scoring as a person does it, with a model of a few seconds'
// training.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TranslateCommandTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const std::string corpus = (source_folder() / "data/everyday").string();
    folder_->write("small.yaml", "data: {train: " + corpus + "/natural-train.tsv, valid: " + corpus +
                                     "/natural-test.tsv, test: " + corpus +
                                     "/natural-test.tsv, max_tokens: 100}\n"
                                     "tokenizer: {path: " +
                                     (source_folder() / "tests/golden/tokenizer/bpe.model").string() +
                                     "}\nmodel: {size: tiny, context_length: 128}\n"
                                     "train: {batch_tokens: 1024, steps: 120, warmup_steps: 10, "
                                     "learning_rate: 5e-3, validate_every: 60}\n");
    const Outcome one = run_calque(*folder_, "train small.yaml run=one");
    ASSERT_EQ(one.code, 0) << one.err;
    ASSERT_EQ(run_calque(*folder_, "train small.yaml run=two train.steps=20").code, 0);
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome run(const std::string& arguments, const std::string& input = "") {
    return run_calque(*folder_, arguments, input);
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* TranslateCommandTest::folder_ = nullptr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t count_lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_F(TranslateCommandTest, ValidationKeepsBleuAndSamplesInTheMetricsAndTheReport) {
  json last;
  std::istringstream lines(read_file(*folder_ / "runs/one/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json metrics = json::parse(line);
    if (metrics.contains("valid_bleu")) last = metrics;
  }
  ASSERT_TRUE(last.contains("samples"));
  EXPECT_EQ(last["samples"].size(), 4U);
  EXPECT_GE(last["valid_bleu"].get<double>(), 0.0);
  EXPECT_GT(last["valid_seconds"].get<double>(), 0.0);
  EXPECT_THAT(read_file(*folder_ / "runs/one/report.html"), HasSubstr("Validation BLEU"));
  EXPECT_THAT(read_file(*folder_ / "runs/one/log.txt"), HasSubstr("BLEU"));
}

TEST_F(TranslateCommandTest, InAPipeEveryLineGivesOneLineInOrder) {
  std::string input = "Bonjour.\n\nMerci beaucoup !\n   \n\xff\xfe\nOù est la gare ?";
  const Outcome out = run("translate one", input);
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(count_lines(out.out), 6U);
  EXPECT_THAT(out.out, HasSubstr("\n\n"));
  EXPECT_THAT(out.err, HasSubstr("stdin:5: not valid UTF-8"));
  EXPECT_EQ(run("translate one", "").out, "");
  // The same by itself as among others, and as a checkpoint's folder.
  EXPECT_EQ(run("translate runs/one/checkpoints/best", "Bonjour.\n").out,
            out.out.substr(0, out.out.find('\n') + 1));
}

TEST_F(TranslateCommandTest, FilesAreTranslatedAndWhatIsNoFileIsRefused) {
  folder_->write("a.fr", "Bonjour.\nMerci.\n");
  folder_->write("b.fr", "Le chat dort.");
  folder_->write("empty.fr", "");
  folder_->write("binary", std::string("\x7f"
                                       "ELF\0\1\2\3\n\xff\xfe\0\0",
                                       13));
  const Outcome files = run("translate one a.fr empty.fr b.fr");
  EXPECT_EQ(files.code, 0) << files.err;
  EXPECT_EQ(count_lines(files.out), 3U);
  EXPECT_EQ(count_lines(run("translate one binary").out), 2U);
  EXPECT_EQ(run("translate one runs").code, 2);
  EXPECT_EQ(run("translate one -o out.en a.fr").out, "");
  EXPECT_EQ(read_file(*folder_ / "out.en"), run("translate one a.fr").out);
  EXPECT_EQ(run("translate one -", "Bonjour.\nMerci.\n").out, run("translate one a.fr").out);
  EXPECT_EQ(run("translate one /dev/stdin", "Bonjour.\nMerci.\n").out, run("translate one a.fr").out);
  std::system(("mkfifo '" + (*folder_ / "fifo").string() + "' && (cat '" + (*folder_ / "a.fr").string() +
               "' > '" + (*folder_ / "fifo").string() + "' &)")
                  .c_str());
  EXPECT_EQ(run("translate one fifo").out, run("translate one a.fr").out);
  EXPECT_EQ(run("translate one missing.fr").code, 2);
  EXPECT_EQ(run("translate one a.fr missing.fr").out, "");  // refused before anything is translated
  folder_->write("long.fr", std::string((16 << 20) + 9, 'x') + "\n");
  const Outcome too_long = run("translate one long.fr");
  EXPECT_EQ(too_long.code, 2);
  EXPECT_THAT(too_long.err, HasSubstr("long.fr:1: a line of over 16 MB"));
}

TEST_F(TranslateCommandTest, ALongLineIsTranslatedInParts) {
  std::string line;
  for (int i = 0; i < 200; ++i) line += "Le petit chat noir dort dans la grande maison. ";
  const Outcome out = run("translate one --beam 1 --json", line + "\n" + std::string(20000, 'x') + "\n");
  EXPECT_EQ(out.code, 0) << out.err;
  std::istringstream lines(out.out);
  std::string first;
  std::getline(lines, first);
  EXPECT_EQ(json::parse(first)["source"].get<std::string>() + " ", line);
  EXPECT_EQ(count_lines(out.out), 2U);
}

TEST_F(TranslateCommandTest, WhatIsTooLongForTheModelIsReported) {
  const std::string word(12'000, 'm');
  std::string words;
  for (int i = 0; i < 800; ++i) words += "le chat dort et ";
  const Outcome out = run("translate one --beam 1", word + "\n" + words + "\nLe chat dort.\n");
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_THAT(out.err, HasSubstr("line 1: a word is too long for the model and was copied"));
  EXPECT_THAT(out.err, HasSubstr("line 2: a sentence is too long for the model and was cut between words"));
  EXPECT_EQ(out.err.find("line 3"), std::string::npos) << out.err;
}

TEST_F(TranslateCommandTest, NbestScoresAndPrefixAreGivenAsAskedFor) {
  const Outcome out = run("translate one --nbest 3 --scores", "Bonjour.\nMerci.\n");
  EXPECT_EQ(count_lines(out.out), 6U);
  EXPECT_TRUE(out.out.starts_with("1\t-")) << out.out;
  EXPECT_THAT(run("translate one --prefix 'The cat'", "Bonjour.\n").out, testing::StartsWith("The cat"));
  const json best = json::parse(run("translate one --json --nbest 2", "Bonjour.\n").out);
  EXPECT_EQ(best["nbest"].size(), 2U);
  EXPECT_EQ(best["nbest"][0]["text"], best["translation"]);
  EXPECT_GE(best["nbest"][0]["score"], best["nbest"][1]["score"]);
  EXPECT_EQ(run("translate one --sample --seed 3", "Bonjour.\n").out,
            run("translate one --sample --seed 3", "Bonjour.\n").out);
  EXPECT_EQ(run("translate one --beam 2 --nbest 3", "a\n").code, 2);
  EXPECT_EQ(run("translate one --nbest 9", "a\n").code, 2);  // a wider beam would change the best translation
  const json part = json::parse(run("translate one --json --prefix 'The cat'", "Bonjour.\n").out)["nbest"][0];
  EXPECT_EQ(part["tokens"].size(), part["token_log_probabilities"].size());
  // Lower precision changes few of many translations of a model whose choices are clear.
  const std::string many = read_file(source_folder() / "data/everyday/natural-test.tsv");
  std::string sources;
  std::istringstream pairs(many);
  for (std::string line; std::getline(pairs, line);) sources += line.substr(0, line.find('\t')) + "\n";
  std::vector<std::string> exact = lines_of(run("translate one --beam 1", sources).out);
  for (const char* precision : {"bfloat16", "int8"}) {
    const Outcome done =
        run(std::string("translate one --beam 1 --threads 1 --precision ") + precision, sources);
    EXPECT_EQ(done.code, 0) << done.err;
    const std::vector<std::string> rounded = lines_of(done.out);
    ASSERT_EQ(rounded.size(), exact.size());
    size_t same = 0;
    for (size_t i = 0; i < exact.size(); ++i) same += exact[i] == rounded[i];
    EXPECT_GT(same, exact.size() / 2) << precision;
    EXPECT_LT(same, exact.size()) << precision << " rounds nothing";
  }
  EXPECT_EQ(run("translate one --precision int4", "Bonjour.\n").code, 2);
}

TEST_F(TranslateCommandTest, ExamplesStandBeforeEverySentence) {
  folder_->write("shots.tsv", "Bonjour.\tHello.\nMerci.\tThank you.\n");
  const Outcome out = run("translate one --shots shots.tsv", "Bonjour.\nMerci.\n");
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(count_lines(out.out), 2U);
  EXPECT_NE(out.out, run("translate one", "Bonjour.\nMerci.\n").out);  // the model sees them
  folder_->write("shots.tsv", "Bonjour.\tHello.\nMerci.\tThank you.\n");
  folder_->write("none.tsv", "");
  EXPECT_THAT(run("translate one --shots none.tsv", "a\n").err, HasSubstr("no examples"));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "Bonjour.\tHello.\n";
  folder_->write("many.tsv", many);
  EXPECT_THAT(run("translate one --shots many.tsv", "a\n").err, HasSubstr("of the model's"));
  EXPECT_EQ(run("translate one --shots missing.tsv", "a\n").code, 2);
}

TEST_F(TranslateCommandTest, ScoreGivesEveryTokensLogProbabilityAndTheirSum) {
  folder_->write("pair.tsv", "Le chat dort.\tThe cat sleeps.\n");
  const Outcome scored = run("score one pair.tsv --json");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const json line = json::parse(scored.out);
  double sum = 0;
  for (const json& value : line["token_log_probabilities"]) sum += value.get<double>();
  EXPECT_EQ(line["tokens"].size(), line["token_log_probabilities"].size());
  EXPECT_EQ(line["tokens"].back(), "</s>");
  EXPECT_NEAR(line["log_probability"].get<double>(), sum, 1e-6);
  EXPECT_EQ(run("score one pair.tsv").out,
            fmt::format("{:.4f}\t{:.4f}\n", sum, sum / static_cast<double>(line["tokens"].size())));
  EXPECT_EQ(
      count_lines(run("score one " + (source_folder() / "data/everyday/natural-test.tsv").string()).out),
      count_lines(read_file(source_folder() / "data/everyday/natural-test.tsv")));
}

TEST_F(TranslateCommandTest, EvaluationIsKeptInTheRunAndUsedAgain) {
  const Outcome first = run("evaluate one --json --beam 2");
  ASSERT_EQ(first.code, 0) << first.err;
  const json scores = json::parse(first.out);
  for (const char* key : {"score", "low", "high", "signature"})
    EXPECT_TRUE(scores["bleu"].contains(key)) << key;
  for (const char* key : {"chrf", "ter", "sentences", "loss", "perplexity", "length_ratio", "untranslated",
                          "empty", "sentences_per_second"})
    EXPECT_TRUE(scores.contains(key)) << key;
  EXPECT_LE(scores["bleu"]["low"], scores["bleu"]["high"]);
  const auto kept = *folder_ / "runs/one/evaluations/natural-test";
  for (const char* name : {"hypotheses.txt", "references.txt", "sources.txt", "sentences.tsv", "scores.json"})
    EXPECT_TRUE(std::filesystem::exists(kept / name)) << name;
  const json again = json::parse(run("evaluate one --json --beam 2").out);
  EXPECT_EQ(again["seconds"], scores["seconds"]);  // what was measured then
  EXPECT_EQ(again["bleu"], scores["bleu"]);
  const json other = json::parse(run("evaluate one --json --beam 1").out);
  EXPECT_NE(other["seconds"], scores["seconds"]);
  const json rounded = json::parse(run("evaluate one --json --beam 2 --precision int8").out);
  EXPECT_NE(rounded["seconds"], scores["seconds"]);
  // The same hypotheses as a text file, scored by the command that stands in for sacreBLEU.
  run("evaluate one --json --beam 2");
  const json text = json::parse(run("score-text --json --hypothesis " + (kept / "hypotheses.txt").string() +
                                    " --reference " + (kept / "references.txt").string())
                                    .out);
  EXPECT_EQ(text["bleu"], scores["bleu"]);
}

TEST_F(TranslateCommandTest, AnEvaluationWithExamplesIsNotUsedAgainAfterTheyChanged) {
  const auto seconds = [] {
    const Outcome outcome = run("evaluate one --json --beam 1 --shots evaluated.tsv");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out)["seconds"]
        .get<double>();  // as measured when the sentences were translated
  };
  folder_->write("evaluated.tsv", "Bonjour.\tHello.\n");
  const double first = seconds();
  EXPECT_EQ(seconds(), first);
  folder_->write("evaluated.tsv", "Merci.\tThanks\n");  // of the same length
  EXPECT_NE(seconds(), first);
}

TEST_F(TranslateCommandTest, ComparisonTellsTheDifferenceAndDrawsIt) {
  run("evaluate one");
  const std::string translations = (*folder_ / "runs/one/evaluations/natural-test/hypotheses.txt").string();
  const Outcome out = run("compare one two " + translations + " --json --report report.html");
  ASSERT_EQ(out.code, 0) << out.err;
  const json comparison = json::parse(out.out);
  ASSERT_EQ(comparison["runs"].size(), 3U);
  for (const char* key : {"name", "bleu", "chrf", "ter", "parameters", "trained_parameters", "minutes"})
    EXPECT_TRUE(comparison["runs"][0].contains(key)) << key;
  EXPECT_EQ(comparison["runs"][0]["bleu"], comparison["runs"][2]["bleu"]);
  ASSERT_EQ(comparison["comparisons"].size(), 2U);
  EXPECT_EQ(comparison["comparisons"][1]["bleu_difference"], 0.0);
  EXPECT_EQ(comparison["comparisons"][1]["p_randomisation"].get<double>() > 0.0, true);
  EXPECT_THAT(comparison["verdict"].get<std::string>(), HasSubstr("no significant difference"));
  EXPECT_TRUE(comparison["settings"].contains("train.steps"));
  const std::string page = read_file(*folder_ / "report.html");
  EXPECT_THAT(page, HasSubstr("Validation loss"));
  EXPECT_THAT(page, HasSubstr("<mark>"));
  EXPECT_EQ(page.find("http"), std::string::npos);  // self-contained
}

TEST_F(TranslateCommandTest, MistakesAreNamed) {
  const Outcome misspelt = run("translate onee", "a\n");
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("onee: no such run or checkpoint; did you mean one?"));
  EXPECT_EQ(run("evaluate one --source a.fr").code, 2);
  EXPECT_EQ(run("evaluate one --data missing.tsv").code, 2);
  EXPECT_EQ(run("evaluate one --name ../x").code, 2);
  folder_->write("two.txt", "a\nb\n");
  folder_->write("three.txt", "a\nb\nc\n");
  const Outcome counts = run("score-text --hypothesis two.txt --reference three.txt");
  EXPECT_EQ(counts.code, 2);
  EXPECT_THAT(counts.err, HasSubstr("two.txt has 2 lines, three.txt has 3"));
  EXPECT_EQ(run("score-text --hypothesis two.txt --reference two.txt --metrics blue").code, 2);
  EXPECT_EQ(run("compare one two.txt").code, 2);
}

}  // namespace calque
