// Compares BLEU, chrF, TER and the significance tests with golden values from the sacrebleu package
// (tools/goldens/make_scores.py).
#include <gtest/gtest.h>

#include <fstream>

#include "calque/base/error.h"
#include "calque/base/unicode.h"
#include "calque/metrics/numpy_random.h"
#include "calque/metrics/text_scores.h"

namespace calque {
namespace {

using nlohmann::json;

const std::string golden_folder = std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/scores/";

std::vector<std::unique_ptr<Metric>> golden_metrics() {
  std::vector<std::unique_ptr<Metric>> metrics;
  const auto bleu = [&](BleuOptions options) { metrics.push_back(make_bleu(options)); };
  bleu({.effective_order = true});
  bleu({.tokenizer = BleuTokenizer::intl, .effective_order = true});
  bleu({.tokenizer = BleuTokenizer::character, .effective_order = true});
  bleu({.tokenizer = BleuTokenizer::none, .lowercase = true, .effective_order = true});
  bleu({.smoothing = BleuSmoothing::floor});
  bleu({.smoothing = BleuSmoothing::add_k, .lowercase = true});
  metrics.push_back(make_chrf({}));
  metrics.push_back(make_chrf({.lowercase = true}));
  metrics.push_back(make_chrf({.word_order = 2}));
  metrics.push_back(make_ter({}));
  metrics.push_back(make_ter({.case_sensitive = true}));
  return metrics;
}

std::vector<json> golden_sentences() {
  std::ifstream file(golden_folder + "sentences.jsonl");
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

json golden_corpus() { return json::parse(std::ifstream(golden_folder + "corpus.json")); }

ScoredText golden_text(bool two_references = false) {
  ScoredText text;
  for (const json& line : golden_sentences()) {
    text.hypotheses.push_back(line[0]);
    text.references.push_back({line[1]});
  }
  if (two_references) {
    const json corpus = golden_corpus();
    for (size_t i = 0; i < text.references.size(); ++i) text.references[i].push_back(corpus["third"][i]);
  }
  return text;
}

TextScores golden_scores(const std::string& name, bool two_references) {
  ScoringOptions options;
  options.metrics = {name.substr(0, name == "bleu_intl" ? 4 : name == "chrfpp" ? 4 : name.size())};
  if (name == "bleu_intl") options.bleu.tokenizer = BleuTokenizer::intl;
  if (name == "chrfpp") options.chrf.word_order = 2;
  return score_text(golden_text(two_references), options);
}

}  // namespace

TEST(Scores, SentenceScoresMatchSacrebleu) {
  const auto metrics = golden_metrics();
  const auto lines = golden_sentences();
  ASSERT_GT(lines.size(), 1500U);
  for (const json& line : lines) {
    const std::string hypothesis = line[0], reference = line[1];
    for (size_t i = 0; i < metrics.size(); ++i) {
      const std::vector<std::string> references = {reference};
      EXPECT_NEAR(metrics[i]->score(metrics[i]->count(hypothesis, references)), line[2 + i].get<double>(),
                  2e-6)
          << metrics[i]->name() << " " << metrics[i]->signature() << "\n"
          << hypothesis << "\n"
          << reference;
    }
  }
}

TEST(Scores, CorpusScoresIntervalsAndSignaturesMatchSacrebleu) {
  const json corpus = golden_corpus();
  for (const char* name : {"bleu", "bleu_intl", "chrf", "chrfpp", "ter"}) {
    const TextScores scores = golden_scores(name, false);
    EXPECT_EQ(scores.to_text(), corpus["corpus"][name]["text"].get<std::string>() + "\n");
    EXPECT_NEAR(scores.metrics[0].score, corpus["corpus"][name]["score"].get<double>(), 1e-9);
    EXPECT_NEAR(scores.metrics[0].interval.half_width(), corpus["corpus"][name]["ci"].get<double>(), 1e-4);
  }
  for (const char* name : {"bleu", "chrf", "ter"}) {
    EXPECT_EQ(golden_scores(name, true).to_text(),
              corpus["corpus"][std::string(name) + "_two"]["text"].get<std::string>() + "\n");
  }
}

TEST(Scores, PairedTestsMatchSacrebleu) {
  const json corpus = golden_corpus();
  const ScoredText first = golden_text();
  for (const auto& [key, metric_name] : {std::pair{"bleu", "bleu"}, {"chrf", "chrf2"}, {"ter", "ter"}}) {
    const auto metric = make_metric(key, {});
    const auto baseline = count_all(*metric, first);
    for (const auto& [index, other] : {std::pair{1, "second"}, {2, "third"}}) {
      ScoredText text = first;
      text.hypotheses = corpus[other].get<std::vector<std::string>>();
      const auto system = count_all(*metric, text);
      EXPECT_NEAR(paired_bootstrap(*metric, baseline, system),
                  corpus["paired"]["bs"][metric_name][index].get<double>(), 1e-9)
          << key << other;
      EXPECT_NEAR(approximate_randomisation(*metric, baseline, system),
                  corpus["paired"]["ar"][metric_name][index].get<double>(), 1e-9)
          << key << other;
    }
  }
}

TEST(Scores, EmptyTextIsAnErrorButEmptyLinesAreNot) {
  EXPECT_THROW(score_text({}, {}), UserError);
  EXPECT_THROW(score_text({{"a"}, {}}, {}), UserError);
  const TextScores scores = score_text({{"", ""}, {{""}, {"a"}}}, {});
  EXPECT_EQ(scores.find("bleu")->score, 0);
  EXPECT_EQ(scores.find("chrf")->score, 0);
  EXPECT_EQ(scores.find("ter")->score, 100);
}

TEST(NumpyRandom, MatchesNumpy) {
  // numpy.random.default_rng(12345): integers(0, 2**32, 4), then choice(10, 12) from a new one, …
  NumpyRandom random(12345);
  EXPECT_EQ(random.next_64(), 4193609425186963869ULL);
  NumpyRandom choice(12345);
  std::vector<uint32_t> drawn;
  for (int i = 0; i < 12; ++i) drawn.push_back(choice.below(10));
  EXPECT_EQ(drawn, (std::vector<uint32_t>{6, 2, 7, 3, 2, 7, 6, 6, 9, 3, 8, 3}));
  NumpyRandom seven(7);
  for (const uint64_t expected : {11530976094092348043ULL, 16550673365885938325ULL, 14308875409591826786ULL})
    EXPECT_EQ(seven.next_64(), expected);
  NumpyRandom halves(7);
  for (const uint32_t expected : {4058335883U, 2684764585U, 2938530453U, 3853503932U, 2483747170U})
    EXPECT_EQ(halves.next_32(), expected);
  // Numbers this large are often rejected. below(1) takes no random number.
  NumpyRandom large(12345), half(12345);
  EXPECT_EQ(large.below(1), 0U);
  for (const uint32_t expected : {2097645094U, 682008066U, 2365940964U, 950275018U, 2392096371U, 2028764011U,
                                  2518275128U, 1794926260U, 639429039U, 560202556U, 687406213U, 2018268131U})
    EXPECT_EQ(large.below(3'000'000'000), expected);
  for (const uint32_t expected : {488200390U, 1693606511U, 680233354U, 438466540U, 1712329281U, 1380152456U,
                                  1452245847U, 714712467U, 457721135U, 492064534U, 533103612U, 2037706757U})
    EXPECT_EQ(half.below(2'147'483'649), expected);
  NumpyRandom coins(12345);
  std::string flips;
  for (int i = 0; i < 70; ++i) flips += coins.coin() ? '1' : '0';
  EXPECT_EQ(flips, "1011100110000011111111110100110110110001100011010100110001011100011110");
}

TEST(Unicode, CodePointsConvertBackToTheSameText) {
  for (const std::string& text : {std::string("aé漢🙂"), std::string(), std::string("\x7f\u0080")})
    EXPECT_EQ(to_utf8(code_points(text)), text);
  EXPECT_EQ(to_utf8(code_points("a\xff\xc3z")), "a\uFFFD\uFFFDz");
  EXPECT_EQ(lower_case("ÉTÉ ΑΣ İ"), "été ας i̇");
  EXPECT_EQ(split_words(U" a\u00a0b\u3000").size(), 2U);
  EXPECT_TRUE(is_letter(U'é') && is_number(U'½') && is_punctuation(U'«') && is_symbol(U'€'));
}

}  // namespace calque
