// The heads of a trained model: what each attends to, and what its removal costs.
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "attend.h"
#include "calque/base/error.h"
#include "calque/base/progress.h"
#include "calque/base/unicode.h"
#include "calque/decode/scorer.h"
#include "calque/model/batch_layout.h"
#include "calque/model/decoder.h"
#include "calque/report/chart.h"
#include "calque/runs/evaluation.h"
#include "calque/runs/model_source.h"

namespace calque {
namespace {

using torch::Tensor;

struct HeadFacts {
  int64_t layer, head;
  double largest = 0;         // mean of a row's largest weight; near 1: the head copies
  double entropy_share = 0;   // mean entropy relative to the maximum; near 1: the head averages
  double offset_weight = 0;   // mean weight at the best fixed offset (the token itself, the one before, …)
  int64_t offset = 0;         // that offset, in tokens back
  double loss = 0, bleu = 0;  // change when the head is removed

  std::string name() const { return fmt::format("layer {} head {}", layer + 1, head + 1); }
  std::string kind() const {
    if (offset_weight > 0.5)
      return offset == 0 ? "fixed offset (itself)" : fmt::format("fixed offset ({} back)", offset);
    if (largest > 0.6) return "copies";
    return entropy_share > 0.7 ? "averages" : "mixed";
  }
};

constexpr int64_t offsets_tried = 6;

double bleu_of(const Translator& translator, const TestSet& test) {
  ScoredText text;
  const auto translations = translator.translate_all(test.sources);
  for (size_t i = 0; i < translations.size(); ++i) {
    text.hypotheses.push_back(translations[i].text());
    text.references.push_back({test.references[i]});
  }
  ScoringOptions options;
  options.metrics = {"bleu"};
  options.resamples = 0;
  return score_text(text, options).metrics.front().score;
}

// Statistics of every head's attention weights over all rows of the pairs.
std::vector<HeadFacts> analyse_heads(const Decoder& decoder, const SequenceFormat& format,
                                     const std::vector<TokenPair>& pairs,
                                     const std::function<void()>& check) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig& c = decoder.config();
  std::vector<HeadFacts> heads;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (int64_t head = 0; head < c.heads; ++head) heads.push_back({layer, head});
  }
  std::vector<double> rows(static_cast<size_t>(c.layers), 0.0);
  std::vector<std::vector<double>> by_offset(heads.size(), std::vector<double>(offsets_tried, 0.0));
  for (const TokenPair& pair : pairs) {
    check();
    Batch batch;
    batch.add(format, pair.source, pair.target);
    const Layout layout = batch_layout(batch, c);
    const Hook hook = [&](const std::string& name, const Tensor& weights) {  // [heads, queries, rows]
      if (!name.ends_with("attention.weights.0")) return;
      const auto layer = std::stoll(name.substr(std::string("blocks.").size()));
      const int64_t queries = weights.size(1), row_count = weights.size(2);
      rows[static_cast<size_t>(layer)] += static_cast<double>(queries);
      const Tensor largest = std::get<0>(weights.max(2)).sum(1);
      const Tensor entropy = -(weights * (weights + 1e-12).log()).sum(2);
      // The maximum entropy is the log of the number of rows that the query attends to.
      const Tensor maximum = (weights > 0).sum(2).clamp_min(2).to(torch::kFloat32).log();
      const Tensor share = (entropy / maximum).sum(1);
      for (int64_t head = 0; head < c.heads; ++head) {
        auto& facts = heads[static_cast<size_t>(layer * c.heads + head)];
        facts.largest += largest[head].item<double>();
        facts.entropy_share += share[head].item<double>();
        for (int64_t offset = 0; offset < offsets_tried; ++offset) {
          const Tensor diagonal = weights[head].diagonal(row_count - queries - offset);
          by_offset[static_cast<size_t>(layer * c.heads + head)][static_cast<size_t>(offset)] +=
              diagonal.sum().item<double>();
        }
      }
    };
    decoder.hidden(index_tensor(batch.tokens), layout, &hook);
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    const double count = std::max(rows[static_cast<size_t>(heads[i].layer)], 1.0);
    heads[i].largest /= count;
    heads[i].entropy_share /= count;
    const auto best = std::max_element(by_offset[i].begin(), by_offset[i].end());
    heads[i].offset = best - by_offset[i].begin();
    heads[i].offset_weight = *best / count;
  }
  return heads;
}

// A hook that zeroes the output of one head.
Hook without_head(const ModelConfig& c, const HeadFacts& head) {
  const std::string name = fmt::format("blocks.{}.attention.heads", head.layer);
  const int64_t size = c.head_size_or_default(), first = head.head * size;
  return [name, first, size](const std::string& shown, const Tensor& heads) {  // [queries, heads · head_size]
    if (shown == name) heads.slice(1, first, first + size).zero_();
  };
}

std::string map_of(const std::vector<HeadFacts>& heads, const ModelConfig& c, double HeadFacts::*value,
                   double scale) {
  HeatMap map;
  for (int64_t head = 0; head < c.heads; ++head) map.columns.push_back(fmt::format("head {}", head + 1));
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    map.rows.push_back(fmt::format("layer {}", layer + 1));
    map.values.emplace_back();
    for (int64_t head = 0; head < c.heads; ++head)
      map.values.back().push_back(
          std::clamp(heads[static_cast<size_t>(layer * c.heads + head)].*value / scale, 0.0, 1.0));
  }
  return heat_map(map);
}

}  // namespace

ExperimentResult trained_experiment(const ExperimentOptions& options) {
  if (options.model.empty())
    throw UserError("the experiment `trained` needs a trained model: --model RUN",
                    "`calque train configs/demo.yaml` trains one");
  const ModelSource source = find_model(options.runs, options.model);
  const auto translator = open_translator(source, WeightPrecision::float32, options.device);
  translator->config().beam = 1;
  Corpus corpus;
  if (!options.data.empty()) {
    corpus.emplace_back().pairs = options.data;
  } else if (source.config) {
    corpus = source.config->data.valid;
  }
  if (corpus.empty())
    throw UserError(fmt::format("{}: no validation set found", options.model),
                    "pass one with --data FILE.tsv");
  const auto sentences = std::max<int64_t>(1, std::llround(options.parameter("sentences")));
  const TestSet test = read_test_set(corpus, "data.valid", sentences);
  const auto translated = std::llround(options.parameter("bleu"));
  const TestSet few = translated > 0 ? read_test_set(corpus, "data.valid", translated) : TestSet{};
  std::vector<TokenPair> pairs;
  const Decoder& decoder = translator->decoder();
  for (size_t i = 0; i < test.sources.size(); ++i) {
    TokenPair pair{translator->tokenizer().encode(clean_text(test.sources[i])),
                   translator->tokenizer().encode(clean_text(test.references[i]))};
    const int64_t rows = translator->format().rows(static_cast<int64_t>(pair.source.size()),
                                                   static_cast<int64_t>(pair.target.size()));
    if (rows <= decoder.config().context_length) pairs.push_back(std::move(pair));
  }
  if (pairs.empty())
    throw UserError(fmt::format("{}: all pairs are longer than the model's context", options.model));
  const ModelConfig& c = decoder.config();
  auto heads = analyse_heads(decoder, translator->format(), pairs, options.check);
  const double loss = mean_loss(decoder, translator->format(), pairs),
               bleu = translated > 0 ? bleu_of(*translator, few) : 0;
  Progress progress("removing heads", static_cast<int64_t>(heads.size()), "heads");
  for (HeadFacts& head : heads) {
    options.check();
    const Hook hook = without_head(c, head);
    head.loss = mean_loss(decoder, translator->format(), pairs, &hook) - loss;
    translator->set_hook(&hook);
    if (translated > 0) head.bleu = bleu_of(*translator, few) - bleu;
    translator->set_hook(nullptr);
    progress.advance(1);
  }
  auto by_importance = heads;
  std::sort(by_importance.begin(), by_importance.end(),
            [](const HeadFacts& a, const HeadFacts& b) { return a.loss > b.loss; });
  ExperimentResult result;
  result.explanation = fmt::format(
      "The {} heads of {} on {} validation sentences. A head copies if its largest weight is near 1,\n"
      "averages if the entropy of its weights is near the maximum, and is positional if it attends to a\n"
      "fixed offset. Each head is removed in turn to measure the change in loss and BLEU.\n"
      "Most important: {} ({:+.3f} loss{}). Least important: {} ({:+.3f}).\n",
      heads.size(), source.name, test.sources.size(), by_importance.front().name(),
      by_importance.front().loss,
      translated > 0 ? fmt::format(", {:+.1f} BLEU", by_importance.front().bleu) : "",
      by_importance.back().name(), by_importance.back().loss);
  nlohmann::json all = nlohmann::json::array();
  for (const HeadFacts& head : heads) {
    all.push_back({{"layer", head.layer + 1},
                   {"head", head.head + 1},
                   {"kind", head.kind()},
                   {"largest_weight", head.largest},
                   {"evenness", head.entropy_share},
                   {"order", head.offset_weight},
                   {"offset", head.offset},
                   {"loss_without", head.loss},
                   {"bleu_without", head.bleu}});
    result.explanation += fmt::format(
        "  {:<16} {:<22} largest {:.2f}  entropy {:.2f}  offset {:.2f}  removed: {:+.4f} loss{}\n",
        head.name(), head.kind(), head.largest, head.entropy_share, head.offset_weight, head.loss,
        translated > 0 ? fmt::format(", {:+.1f} BLEU", head.bleu) : "");
  }
  result.values = {{"model", source.name},
                   {"loss", loss},
                   {"bleu", bleu},
                   {"heads", all},
                   {"most_needed", by_importance.front().name()},
                   {"least_needed", by_importance.back().name()}};
  result.claims.push_back({"all statistics of the heads are between 0 and 1", "0 to 1",
                           "see the list of heads",
                           std::all_of(heads.begin(), heads.end(), [](const HeadFacts& h) {
                             return h.largest >= 0 && h.largest <= 1.0001 && h.entropy_share >= 0 &&
                                    h.entropy_share <= 1.0001 && h.offset_weight <= 1.0001;
                           })});
  const double again = mean_loss(decoder, translator->format(), pairs);
  result.claims.push_back(near("loss with all heads restored", loss, again, 1e-6));
  const double largest_increase = std::max(by_importance.front().loss, 1e-9);
  result.figures.push_back({"trained-largest", "Mean largest weight (near 1: the head copies)",
                            map_of(heads, c, &HeadFacts::largest, 1)});
  result.figures.push_back({"trained-even", "Entropy relative to the maximum (near 1: the head averages)",
                            map_of(heads, c, &HeadFacts::entropy_share, 1)});
  result.figures.push_back({"trained-order",
                            "Weight at the best fixed offset (near 1: the head is positional)",
                            map_of(heads, c, &HeadFacts::offset_weight, 1)});
  result.figures.push_back(
      {"trained-need",
       fmt::format("Increase in loss without each head, relative to the most important one ({:+.3f})",
                   by_importance.front().loss),
       map_of(heads, c, &HeadFacts::loss, largest_increase)});
  return result;
}

}  // namespace calque
