// Answers: what the routes of calque's own API answer, as structs with a list of members each.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calque/explore/experiment.h"
#include "calque/kernels/weight_precision.h"
#include "calque/runs/run_list.h"
#include "calque/serve/served_models.h"
#include "json_members.h"

namespace calque {

struct StateAnswer {
  ModelState state = ModelState::loading;
};
template <class Visitor>
void members(const StateAnswer& one, Visitor& visit) {
  visit("state", one.state);
}

struct HealthAnswer {
  ModelState status = ModelState::loading;
};
template <class Visitor>
void members(const HealthAnswer& one, Visitor& visit) {
  visit("status", one.status, "ready once a model has answered");
}

struct RemovedAnswer {
  std::string removed;
};
template <class Visitor>
void members(const RemovedAnswer& one, Visitor& visit) {
  visit("removed", one.removed);
}

struct ModelAnswer {
  std::string name;
  ModelState state = ModelState::loading;
  WeightPrecision precision = WeightPrecision::int8;
  Nullable<double> bleu = {};
  Nullable<std::string> bleu_on = {};
  Nullable<double> sentences_per_second = {};
  std::optional<std::string> error = {};
  std::optional<int64_t> parameters = {}, bytes = {}, layers = {}, heads = {};
};
template <class Visitor>
void members(const ModelAnswer& one, Visitor& visit) {
  visit("name", one.name);
  visit("state", one.state);
  visit("precision", one.precision, "of its weights");
  visit("bleu", one.bleu, "of the run's newest evaluation");
  visit("bleu_on", one.bleu_on, "the test set, and its size");
  visit("sentences_per_second", one.sentences_per_second, "while it translates; null: it has not yet");
  visit("error", one.error, "why it failed");
  visit("parameters", one.parameters, "once it is ready, as all that follow");
  visit("bytes", one.bytes, "of its weights in memory");
  visit("layers", one.layers);
  visit("heads", one.heads);
}

// A model as OpenAI's clients read it.
struct OpenaiModel {
  std::string id, object = "model", owned_by = "calque";
  int64_t created = 0;
};
template <class Visitor>
void members(const OpenaiModel& one, Visitor& visit) {
  visit("id", one.id);
  visit("object", one.object);
  visit("created", one.created);
  visit("owned_by", one.owned_by);
}

struct ModelsAnswer {
  std::string default_model;
  std::vector<std::string> precisions;
  std::vector<ModelAnswer> models;
  std::string object = "list";
  std::vector<OpenaiModel> data = {};
};
template <class Visitor>
void members(const ModelsAnswer& one, Visitor& visit) {
  visit("default", one.default_model, "answers where a request names none; empty: there is none");
  visit("precisions", one.precisions, "that a request may ask for");
  visit("models", one.models);
  visit("object", one.object, "for OpenAI's clients, as data");
  visit("data", one.data, "the models' names once more");
}

struct WordAnswer {
  std::string text;
  double probability = 0;
};
template <class Visitor>
void members(const WordAnswer& one, Visitor& visit) {
  visit("text", one.text);
  visit("probability", one.probability, "the product of its tokens'");
}

struct TokenAnswer {
  std::string piece;
  double log_probability = 0;
};
template <class Visitor>
void members(const TokenAnswer& one, Visitor& visit) {
  visit("piece", one.piece);
  visit("log_probability", one.log_probability);
}

struct SegmentAnswer {
  int64_t line = 0;
  std::string source, text;
  bool looped = false, copied = false, complete = true;
  std::optional<std::vector<WordAnswer>> words = {};
  std::optional<std::vector<TokenAnswer>> tokens = {};
  std::optional<std::vector<std::string>> source_words = {};
  std::optional<std::vector<std::vector<double>>> attention = {};
};
template <class Visitor>
void members(const SegmentAnswer& one, Visitor& visit) {
  visit("line", one.line, "of the text, from 0");
  visit("source", one.source);
  visit("text", one.text);
  visit("looped", one.looped, "the search repeated itself and was run again");
  visit("copied", one.copied, "too long a word to be language");
  visit("complete", one.complete, "false: cut off at the length limit");
  visit("words", one.words, "where the request asks for words");
  visit("tokens", one.tokens, "where the request asks for scores");
  visit("source_words", one.source_words, "where the request asks for words or attention");
  visit("attention", one.attention, "of each word and of the end to each source word");
}

struct CandidateAnswer {
  std::string text;
  double score = 0, log_probability = 0;
  bool complete = true;
  std::optional<std::vector<std::string>> parts = {};
};
template <class Visitor>
void members(const CandidateAnswer& one, Visitor& visit) {
  visit("text", one.text);
  visit("score", one.score, "the sum over all lines, after the length penalty");
  visit("log_probability", one.log_probability, "the sum over all lines");
  visit("complete", one.complete, "false: a part was cut off at the length limit");
  visit("parts", one.parts, "where the request asks for words: of each of `segments`, this candidate's text");
}

struct TextAnswer {
  std::string text;
  std::vector<SegmentAnswer> segments;
  std::vector<CandidateAnswer> nbest;
};
template <class Visitor>
void members(const TextAnswer& one, Visitor& visit) {
  visit("text", one.text);
  visit("segments", one.segments, "the parts that were translated one by one");
  visit("nbest", one.nbest, "the best first; each joins the candidates of this rank of all lines");
}

struct TranslateFacts {
  std::string model;
  WeightPrecision precision = WeightPrecision::int8;
  double seconds = 0;
};
template <class Visitor>
void members(const TranslateFacts& one, Visitor& visit) {
  visit("model", one.model);
  visit("precision", one.precision);
  visit("seconds", one.seconds);
}

struct TranslateAnswer {
  TranslateFacts facts;
  std::vector<TextAnswer> translations;
};
template <class Visitor>
void members(const TranslateAnswer& one, Visitor& visit) {
  members(one.facts, visit);
  visit("translations", one.translations, "of each text");
}

struct AttentionAnswer {
  std::vector<std::string> source_words, target_words;
  int64_t layers = 0, heads = 0;
  std::vector<std::vector<double>> attention;
};
template <class Visitor>
void members(const AttentionAnswer& one, Visitor& visit) {
  visit("source_words", one.source_words);
  visit("target_words", one.target_words, "and the end");
  visit("layers", one.layers);
  visit("heads", one.heads);
  visit("attention", one.attention, "[target word][source word]");
}

struct AlternativeAnswer {
  std::string word;
  double probability = 0;
  std::string translation;
};
template <class Visitor>
void members(const AlternativeAnswer& one, Visitor& visit) {
  visit("word", one.word);
  visit("probability", one.probability, "of the tokens that it begins with");
  visit("translation", one.translation, "that continues with this word");
}

struct AlternativesAnswer {
  std::vector<AlternativeAnswer> alternatives;
};
template <class Visitor>
void members(const AlternativesAnswer& one, Visitor& visit) {
  visit("alternatives", one.alternatives);
}

struct MetricAnswer {
  double score = 0;
  std::string signature;
};
template <class Visitor>
void members(const MetricAnswer& one, Visitor& visit) {
  visit("score", one.score);
  visit("signature", one.signature, "as sacreBLEU writes it");
}

struct EvaluationAnswer {
  int64_t sentences = 0;
  std::vector<std::string> translations;
  MetricAnswer bleu = {}, chrf = {}, ter = {};
};
template <class Visitor>
void members(const EvaluationAnswer& one, Visitor& visit) {
  visit("sentences", one.sentences);
  visit("translations", one.translations, "that were scored");
  visit("bleu", one.bleu);
  visit("chrf", one.chrf);
  visit("ter", one.ter);
}

struct ListedRun {
  RunSummary run;
  bool has_report = false;
};
template <class Visitor>
void members(const ListedRun& one, Visitor& visit) {
  visit("name", one.run.name);
  visit("state", one.run.state, "done, interrupted, paused, training, stopped, search or empty");
  visit("step", one.run.step);
  visit("bleu", Nullable<double>{one.run.bleu});
  visit("bleu_on", Nullable<std::string>{one.run.bleu_on}, "the name of the test set, or validation");
  visit("bytes", one.run.bytes);
  visit("age_seconds", one.run.age_seconds, "since the last change");
  visit("has_report", one.has_report);
}

struct ListedComparison {
  std::string name, title;
};
template <class Visitor>
void members(const ListedComparison& one, Visitor& visit) {
  visit("name", one.name);
  visit("title", one.title);
}

struct RunsAnswer {
  std::vector<ListedRun> runs;
  std::vector<ListedComparison> comparisons;
};
template <class Visitor>
void members(const RunsAnswer& one, Visitor& visit) {
  visit("runs", one.runs, "the newest first");
  visit("comparisons", one.comparisons);
}

struct RunAnswer {
  std::string name, state, config;
  std::vector<AnyMembers> metrics;
};
template <class Visitor>
void members(const RunAnswer& one, Visitor& visit) {
  visit("name", one.name);
  visit("state", one.state);
  visit("config", one.config, "the resolved configuration, as YAML");
  visit("metrics", one.metrics, "the lines of metrics.jsonl after the step that the query asks for");
}

struct ParameterAnswer {
  std::string name;
  double value = 0, low = 0, high = 0;
  bool is_integer = false, is_logarithmic = false;
  std::string meaning;
};
template <class Visitor>
void members(const ParameterAnswer& one, Visitor& visit) {
  visit("name", one.name);
  visit("value", one.value, "where the request gives none");
  visit("low", one.low);
  visit("high", one.high);
  visit("integer", one.is_integer);
  visit("log", one.is_logarithmic, "its scale is logarithmic");
  visit("meaning", one.meaning);
}

struct ListedExperiment {
  std::string name, summary;
  bool needs_model = false;
  std::vector<ParameterAnswer> parameters;
};
template <class Visitor>
void members(const ListedExperiment& one, Visitor& visit) {
  visit("name", one.name);
  visit("summary", one.summary);
  visit("needs_model", one.needs_model);
  visit("parameters", one.parameters);
}

struct ExperimentsAnswer {
  std::vector<ListedExperiment> experiments;
};
template <class Visitor>
void members(const ExperimentsAnswer& one, Visitor& visit) {
  visit("experiments", one.experiments);
}

template <class Visitor>
void members(const Claim& one, Visitor& visit) {
  visit("claim", one.claim);
  visit("expected", one.expected);
  visit("found", one.found);
  visit("holds", one.holds);
}

template <class Visitor>
void members(const Figure& one, Visitor& visit) {
  visit("name", one.name);
  visit("title", one.title);
  visit("html", one.html, "SVG or a table");
}

struct ExperimentAnswer {
  std::string experiment;
  ExperimentResult result;
};
template <class Visitor>
void members(const ExperimentAnswer& one, Visitor& visit) {
  visit("experiment", one.experiment);
  visit("explanation", one.result.explanation);
  visit("holds", one.result.holds(), "all claims do");
  visit("values", AnyMembers{one.result.values}, "what was measured");
  visit("claims", one.result.claims);
  visit("figures", one.result.figures);
}

}  // namespace calque
