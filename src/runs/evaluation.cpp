#include "calque/runs/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/data/line_reader.h"
#include "calque/decode/scorer.h"
#include "calque/runs/shared_translation.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

uint64_t hash_lines(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  Hasher hasher;
  for (const auto* lines : {&a, &b}) {
    for (const std::string& line : *lines) {
      hasher.add(line);
      hasher.add("\n");
    }
    hasher.add("\0", 1);
  }
  return hasher.value();
}

std::string as_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

int64_t count_words(const std::vector<std::string>& lines) {
  int64_t words = 0;
  for (const std::string& line : lines) {
    bool inside = false;
    for (const char c : line) {
      const bool blank = c == ' ' || c == '\t';
      words += !blank && !inside;
      inside = !blank;
    }
  }
  return words;
}

std::string precision_name(const Translator& translator) {
  const Decoder& decoder = translator.decoder();
  const std::string name(name_of(decoder.weight_precision()));
  return decoder.device().is_cpu() ? name : fmt::format("{} on {}", name, decoder.device().str());
}

// Identifies everything that a stored evaluation depends on.
std::string evaluation_key(const ModelSource& source, const Translator& translator, const TestSet& test) {
  DecodeConfig decode = translator.config();
  decode.batch = 0;  // affects speed alone
  Hasher hasher;
  const bool adapted = fs::exists(source.checkpoint / "adapters.safetensors");
  hasher.add_value(hash_file(source.checkpoint / (adapted ? "adapters.safetensors" : "model.safetensors")));
  hasher.add_value(translator.tokenizer().hash());
  hasher.add_value(test.hash);
  for (const Field& field : fields(decode)) hasher.add(field.name + YAML::Dump(field.write({})));
  if (!decode.shots.empty()) hasher.add_value(hash_file(decode.shots));
  hasher.add(precision_name(translator) + search_version);
  return hex(hasher.value());
}

std::optional<std::vector<std::string>> stored_hypotheses(const fs::path& folder, const std::string& key,
                                                          size_t count, EvaluationFacts& facts) {
  if (!fs::exists(folder / "scores.json") || !fs::exists(folder / "hypotheses.txt")) return std::nullopt;
  const json stored = json::parse(read_file(folder / "scores.json"), nullptr, false);
  if (!stored.is_object() || stored.value("key", "") != key || !stored.contains("facts")) return std::nullopt;
  auto lines = read_lines(folder / "hypotheses.txt");
  if (lines.size() != count) return std::nullopt;
  facts = EvaluationFacts::from_json(stored["facts"]);
  return lines;
}

// All files at once: a killed process leaves the earlier evaluation or this one, not a mixture.
void store(const fs::path& destination, const Evaluation& evaluation, const std::string& key) {
  const fs::path folder = destination.parent_path() / ("." + destination.filename().string() + ".tmp");
  fs::remove_all(folder);  // left behind by a killed process
  fs::create_directories(folder);
  write_file(folder / "sources.txt", as_lines(evaluation.test.sources));
  write_file(folder / "references.txt", as_lines(evaluation.test.references));
  write_file(folder / "hypotheses.txt", as_lines(evaluation.hypotheses));
  const ScoredText text = evaluation.text();
  const auto bleu = sentence_bleu(text, {});
  const auto chrf = make_chrf({});
  const auto chrf_scores = sentence_scores(*chrf, count_all(*chrf, text));
  std::string table = "bleu\tchrf\tsource\treference\thypothesis\n";
  for (size_t i = 0; i < text.hypotheses.size(); ++i) {
    table += fmt::format("{:.2f}\t{:.2f}\t{}\t{}\t{}\n", bleu[i], chrf_scores[i], evaluation.test.sources[i],
                         evaluation.test.references[i], text.hypotheses[i]);
  }
  write_file(folder / "sentences.tsv", table);
  json all = evaluation.to_json();
  all["facts"] = evaluation.facts.to_json();
  all["key"] = key;
  write_file(folder / "scores.json", all.dump(2) + "\n");
  replace_folder(folder, destination);
}

}  // namespace

std::vector<std::string> read_lines(const fs::path& file) {
  LineReader reader(file);
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(line);) {
    if (const auto bad = find_invalid_utf8(line)) {
      throw UserError(
          fmt::format("{}:{}: byte {} is not valid UTF-8", file.string(), reader.line_number(), *bad + 1),
          encoding_help(file.string()));
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

TestSet read_test_set(const Corpus& corpus, const std::string& name, int64_t most) {
  if (is_text(corpus))
    throw UserError(fmt::format("{}: plain text has no references; pairs are needed", name));
  check_corpus_files(corpus, name);
  TestSet test;
  test.name = name;
  for (const CorpusPart& part : corpus) {
    PairReader reader(part);
    for (SentencePair pair; reader.next(pair);) {
      test.sources.emplace_back(pair.source);
      test.references.emplace_back(pair.target);
    }
  }
  if (test.sources.empty()) throw UserError(fmt::format("{}: no pairs to evaluate on", name));
  if (most > 0 && static_cast<int64_t>(test.sources.size()) > most) {  // spread over the whole
    TestSet part{name, {}, {}, 0};
    for (int64_t i = 0; i < most; ++i) {
      const size_t at = static_cast<size_t>(i) * test.sources.size() / static_cast<size_t>(most);
      part.sources.push_back(test.sources[at]);
      part.references.push_back(test.references[at]);
    }
    test = std::move(part);
  }
  test.hash = hash_lines(test.sources, test.references);
  return test;
}

TestSet default_test_set(const ModelSource& source) {
  if (!source.config || source.config->data.test.empty())
    throw UserError(fmt::format("{}: no test set is known for it", source.name), "name one: --data FILE.tsv");
  const Corpus& corpus = source.config->data.test;
  for (const CorpusPart& part : corpus) {
    for (const fs::path& file : part.files()) {
      if (!fs::exists(file))
        throw UserError(fmt::format("{}: its test set {} is not there", source.name, file.string()),
                        "name one: --data FILE.tsv");
    }
  }
  return read_test_set(corpus, corpus.front().main_file().stem().string());
}

TestSet read_test_set(const fs::path& sources, const fs::path& references) {
  TestSet test;
  test.name = references.stem().string();
  test.sources = read_lines(sources);
  test.references = read_lines(references);
  if (test.sources.size() != test.references.size()) {
    throw UserError(fmt::format("{} has {} lines, {} has {}", sources.string(), test.sources.size(),
                                references.string(), test.references.size()),
                    "line n of one must be the translation of line n of the other");
  }
  if (test.sources.empty()) throw UserError(fmt::format("{}: empty", references.string()));
  test.hash = hash_lines(test.sources, test.references);
  return test;
}

json EvaluationFacts::to_json() const {
  json all = {{"length_ratio", length_ratio}, {"untranslated", untranslated}, {"empty", empty}};
  if (!loss) return all;
  all.update({{"loss", std::isfinite(*loss) ? json(*loss) : json()},
              {"perplexity", std::isfinite(*loss) ? json(std::exp(*loss)) : json()},
              {"seconds", seconds},
              {"sentences_per_second", sentences_per_second},
              {"tokens_per_second", tokens_per_second},
              {"cut_off", cut_off},
              {"beam", beam},
              {"precision", precision},
              {"checkpoint", checkpoint}});
  return all;
}

EvaluationFacts EvaluationFacts::from_json(const json& j) {
  const auto number = [&](const char* key) {
    return j.contains(key) && j[key].is_number() ? j[key].get<double>() : 0;
  };
  EvaluationFacts facts;
  facts.length_ratio = number("length_ratio");
  facts.untranslated = number("untranslated");
  facts.empty = number("empty");
  if (!j.contains("loss")) return facts;
  facts.loss = j["loss"].is_number() ? j["loss"].get<double>() : std::nan("");
  facts.seconds = number("seconds");
  facts.sentences_per_second = number("sentences_per_second");
  facts.tokens_per_second = number("tokens_per_second");
  facts.cut_off = number("cut_off");
  facts.beam = static_cast<int64_t>(number("beam"));
  facts.precision = j.value("precision", "");
  facts.checkpoint = j.value("checkpoint", "");
  return facts;
}

ScoredText Evaluation::text() const {
  ScoredText text{hypotheses, {}};
  for (const std::string& reference : test.references) text.references.push_back({reference});
  return text;
}

json Evaluation::to_json() const {
  json all = scores.to_json();
  all.update(facts.to_json());
  all["system"] = system;
  all["test_set"] = test.name;
  return all;
}

Evaluation score_translations(const std::string& system, const TestSet& test,
                              std::vector<std::string> hypotheses, const ScoringOptions& options) {
  if (hypotheses.size() != test.references.size()) {
    throw UserError(fmt::format("{} has {} lines, but the test set {} has {} sentences", system,
                                hypotheses.size(), test.name, test.references.size()));
  }
  Evaluation evaluation{system, test, std::move(hypotheses), {}, {}};
  evaluation.scores = score_text(evaluation.text(), options);
  int64_t untranslated = 0, empty = 0;
  for (size_t i = 0; i < evaluation.hypotheses.size(); ++i) {
    const std::string& hypothesis = evaluation.hypotheses[i];
    empty += hypothesis.empty() && !test.references[i].empty();
    untranslated += !test.sources.empty() && !hypothesis.empty() && hypothesis == test.sources[i] &&
                    test.sources[i] != test.references[i];
  }
  const auto count = static_cast<double>(evaluation.hypotheses.size());
  const auto reference_words = static_cast<double>(count_words(test.references));
  evaluation.facts.length_ratio =
      reference_words > 0 ? static_cast<double>(count_words(evaluation.hypotheses)) / reference_words : 0;
  evaluation.facts.untranslated = static_cast<double>(untranslated) / count;
  evaluation.facts.empty = static_cast<double>(empty) / count;
  return evaluation;
}

namespace {

// The mean negative log-probability per token of the references. Each rank scores every Nth block of pairs;
// the sums of all blocks are added up in their order, so that the number of ranks makes no difference.
double reference_loss(const Translator& translator, const TestSet& test, ProcessGroup& group) {
  constexpr size_t pairs_per_block = 64;
  const auto sources = group.broadcast(test.sources), references = group.broadcast(test.references);
  const size_t blocks = (sources.size() + pairs_per_block - 1) / pairs_per_block;
  std::vector<double> sums(2 * blocks, 0);  // per block: log-probabilities, tokens
  group.everywhere([&] {
    for (auto block = static_cast<size_t>(group.rank()); block < blocks;
         block += static_cast<size_t>(group.size())) {
      std::vector<TokenPair> pairs;
      for (size_t i = block * pairs_per_block; i < std::min(sources.size(), (block + 1) * pairs_per_block);
           ++i)
        pairs.push_back({translator.tokenizer().encode(clean_text(sources[i])),
                         translator.tokenizer().encode(clean_text(references[i]))});
      for (const auto& scores : score_pairs(translator.decoder(), translator.format(), pairs)) {
        for (const float score : scores) sums[2 * block] += score;
        sums[2 * block + 1] += static_cast<double>(scores.size());
      }
    }
  });
  double sum = 0, tokens = 0;
  sums = group.sum(sums);  // zeros of the other ranks change nothing
  for (size_t block = 0; block < blocks; ++block) {
    sum -= sums[2 * block];
    tokens += sums[2 * block + 1];
  }
  return tokens > 0 ? sum / tokens : std::nan("");
}

struct TranslatedSet {
  std::vector<std::string> texts;
  int64_t tokens = 0, cut_off = 0;
  double seconds = 0;
};

// By all ranks; rank 0 has the test set, and gets all translations.
TranslatedSet translate_set(const Translator& translator, const TestSet& test, ProcessGroup& group) {
  SharedTranslation translation(translator, group,
                                [](int64_t, const Translation& one) { return one.text(); });
  TranslatedSet set;
  if (!group.is_first()) {
    translation.work();
    return set;
  }
  const auto started = std::chrono::steady_clock::now();
  Progress progress("translating", static_cast<int64_t>(test.sources.size()), "sentences");
  size_t at = 0;
  translation.run(
      [&](bool) { return at < test.sources.size() ? std::optional(test.sources[at++]) : std::nullopt; },
      [&](int64_t, const TranslatedLine& one) {
        set.texts.push_back(one.text);
        set.tokens += one.tokens;
        set.cut_off += !one.complete;
        progress.advance(1);
      });
  set.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return set;
}

void describe_search(Evaluation& evaluation, const TranslatedSet& set, const ModelSource& source,
                     const Translator& translator) {
  EvaluationFacts& facts = evaluation.facts;
  const auto count = static_cast<double>(evaluation.hypotheses.size());
  facts.seconds = set.seconds;
  facts.sentences_per_second = count / set.seconds;
  facts.tokens_per_second = static_cast<double>(set.tokens) / set.seconds;
  facts.cut_off = static_cast<double>(set.cut_off) / count;
  facts.beam = translator.config().beam;
  facts.precision = precision_name(translator);
  facts.checkpoint = source.checkpoint.string();
}

}  // namespace

// What rank 0 does alone comes last, when the others have nothing to wait for.
std::optional<Evaluation> evaluate_model(const ModelSource& source, Translator& translator,
                                         const TestSet& test, const ScoringOptions& options, bool again,
                                         ProcessGroup& group) {
  const fs::path folder = source.run ? *source.run / "evaluations" / test.name : fs::path();
  std::string key;
  EvaluationFacts stored_facts;
  std::optional<std::vector<std::string>> stored;
  const bool is_stored = !group
                              .from_first([&] {
                                key = evaluation_key(source, translator, test);
                                if (!folder.empty() && !again)
                                  stored = stored_hypotheses(folder, key, test.sources.size(), stored_facts);
                                return stored ? "stored" : "";
                              })
                              .empty();
  TranslatedSet set;
  double loss = 0;
  if (!is_stored) {
    set = translate_set(translator, test, group);
    loss = reference_loss(translator, test, group);
  }
  if (!group.is_first()) return std::nullopt;
  Evaluation evaluation =
      score_translations(source.name, test, is_stored ? std::move(*stored) : std::move(set.texts), options);
  if (is_stored) {
    evaluation.facts = stored_facts;
    return evaluation;
  }
  evaluation.facts.loss = loss;
  describe_search(evaluation, set, source, translator);
  if (!folder.empty()) store(folder, evaluation, key);
  return evaluation;
}

Evaluation evaluate_model(const ModelSource& source, Translator& translator, const TestSet& test,
                          const ScoringOptions& options, bool again) {
  ProcessGroup alone;
  return *evaluate_model(source, translator, test, options, again, alone);
}

}  // namespace calque
