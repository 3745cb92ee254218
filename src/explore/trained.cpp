// The heads of a trained model: what each looks at, and what is lost without it.
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "attend.h"
#include "calque/base/error.h"
#include "calque/base/progress.h"
#include "calque/decode/scorer.h"
#include "calque/evaluate/chart.h"
#include "calque/model/decoder.h"
#include "calque/train/evaluation.h"
#include "calque/train/model_source.h"

namespace calque {
namespace {

using torch::Tensor;

struct HeadFacts {
  int64_t layer, head;
  double largest = 0;         // mean of a row's largest weight: near 1 it copies
  double evenness = 0;        // mean entropy as a share of the greatest possible: near 1 it averages
  double order = 0;           // weight on the best fixed distance (the word before, itself, …)
  int64_t offset = 0;         // which distance that is
  double loss = 0, bleu = 0;  // of the model without it

  std::string name() const { return fmt::format("layer {} head {}", layer + 1, head + 1); }
  std::string kind() const {
    if (order > 0.5)
      return offset == 0 ? "follows order (itself)" : fmt::format("follows order ({} back)", offset);
    if (largest > 0.6) return "copies";
    return evenness > 0.7 ? "averages" : "mixes";
  }
};

constexpr int64_t offsets_tried = 6;

double mean_loss(const Decoder& decoder, const SequenceFormat& format, const std::vector<TokenPair>& pairs) {
  double sum = 0, count = 0;
  for (const auto& scores : score_pairs(decoder, format, pairs)) {
    for (const float score : scores) sum -= score;
    count += static_cast<double>(scores.size());
  }
  return sum / std::max(count, 1.0);
}

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

// What every head does, over the rows of some pairs.
std::vector<HeadFacts> look_at_heads(const Decoder& decoder, const SequenceFormat& format,
                                     const std::vector<TokenPair>& pairs) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig& c = decoder.config();
  std::vector<HeadFacts> heads;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (int64_t head = 0; head < c.heads; ++head) heads.push_back({layer, head});
  }
  std::vector<double> rows(static_cast<size_t>(c.layers), 0.0);
  std::vector<std::vector<double>> by_offset(heads.size(), std::vector<double>(offsets_tried, 0.0));
  for (const TokenPair& pair : pairs) {
    Batch batch;
    batch.add(format, pair.source, pair.target);
    const Layout layout = make_layout(batch, c.attention == AttentionKind::prefix);
    const Tap tap = [&](const std::string& name, const Tensor& weights) {  // [heads, queries, rows]
      if (!name.ends_with("attention.weights.0")) return;
      const auto layer = std::stoll(name.substr(std::string("blocks.").size()));
      const int64_t queries = weights.size(1), seen = weights.size(2);
      rows[static_cast<size_t>(layer)] += static_cast<double>(queries);
      const Tensor largest = std::get<0>(weights.max(2)).sum(1);
      const Tensor entropy = -(weights * (weights + 1e-12).log()).sum(2);
      // A row sees itself and what is before it, or all of the source: the greatest entropy is the log of
      // that number.
      const Tensor visible = (weights > 0).sum(2).clamp_min(2).to(torch::kFloat32).log();
      const Tensor even = (entropy / visible).sum(1);
      for (int64_t head = 0; head < c.heads; ++head) {
        auto& facts = heads[static_cast<size_t>(layer * c.heads + head)];
        facts.largest += largest[head].item<double>();
        facts.evenness += even[head].item<double>();
        for (int64_t offset = 0; offset < offsets_tried; ++offset) {
          const Tensor diagonal = weights[head].diagonal(seen - queries - offset);
          by_offset[static_cast<size_t>(layer * c.heads + head)][static_cast<size_t>(offset)] +=
              diagonal.sum().item<double>();
        }
      }
    };
    decoder.hidden(index_tensor(batch.tokens), layout, &tap);
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    const double count = std::max(rows[static_cast<size_t>(heads[i].layer)], 1.0);
    heads[i].largest /= count;
    heads[i].evenness /= count;
    const auto best = std::max_element(by_offset[i].begin(), by_offset[i].end());
    heads[i].offset = best - by_offset[i].begin();
    heads[i].order = *best / count;
  }
  return heads;
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
    throw UserError("`trained` looks at a trained model: name one, --model RUN",
                    "`calque train configs/demo.yaml` makes one");
  const ModelSource source = find_model(options.runs, options.model);
  const auto translator = open_translator(source);
  translator->config().beam = 1;
  if (!source.config || source.config->data.valid.empty())
    throw UserError(fmt::format("{}: no validation set is known for it", options.model),
                    "a run has one; name a run");
  const auto wanted = std::max<int64_t>(1, std::llround(options.knob("sentences")));
  const TestSet test = read_test_set(source.config->data.valid, "valid", wanted);
  const auto translated = std::llround(options.knob("bleu"));
  const TestSet few =
      translated > 0 ? read_test_set(source.config->data.valid, "valid", translated) : TestSet{};
  std::vector<TokenPair> pairs;
  for (size_t i = 0; i < test.sources.size(); ++i)
    pairs.push_back({translator->tokenizer().encode(test.sources[i]),
                     translator->tokenizer().encode(test.references[i])});
  const Decoder& decoder = translator->decoder();
  const ModelConfig& c = decoder.config();
  auto heads = look_at_heads(decoder, translator->format(), pairs);
  const double loss = mean_loss(decoder, translator->format(), pairs),
               bleu = translated > 0 ? bleu_of(*translator, few) : 0;
  Progress progress("removing heads", static_cast<int64_t>(heads.size()), "heads");
  for (HeadFacts& head : heads) {
    const torch::NoGradGuard no_gradients;
    // Without its columns of the output matrix a head says nothing.
    const int64_t width = c.width_of_head();
    Tensor columns = decoder.blocks[static_cast<size_t>(head.layer)]->attention->output->weight.slice(
        1, head.head * width, (head.head + 1) * width);
    const Tensor kept = columns.clone();
    columns.zero_();
    head.loss = mean_loss(decoder, translator->format(), pairs) - loss;
    if (translated > 0) head.bleu = bleu_of(*translator, few) - bleu;
    columns.copy_(kept);
    progress.advance(1);
  }
  auto by_need = heads;
  std::sort(by_need.begin(), by_need.end(),
            [](const HeadFacts& a, const HeadFacts& b) { return a.loss > b.loss; });
  ExperimentResult result;
  result.explanation = fmt::format(
      "The {} heads of {} on {} sentences of its validation set. A head copies where its largest weight is "
      "near 1, averages where\n"
      "its weights are even, follows order where it looks a fixed distance back. Each is taken out in turn: "
      "what does it cost?\n"
      "Most needed: {} ({:+.3f} loss{}). Least: {} ({:+.3f}).\n",
      heads.size(), source.name, test.sources.size(), by_need.front().name(), by_need.front().loss,
      translated > 0 ? fmt::format(", {:+.1f} BLEU", by_need.front().bleu) : "", by_need.back().name(),
      by_need.back().loss);
  nlohmann::json all = nlohmann::json::array();
  for (const HeadFacts& head : heads) {
    all.push_back({{"layer", head.layer + 1},
                   {"head", head.head + 1},
                   {"kind", head.kind()},
                   {"largest_weight", head.largest},
                   {"evenness", head.evenness},
                   {"order", head.order},
                   {"offset", head.offset},
                   {"loss_without", head.loss},
                   {"bleu_without", head.bleu}});
    result.explanation +=
        fmt::format("  {:<16} {:<26} largest {:.2f}  even {:.2f}  order {:.2f}  without it {:+.4f} loss{}\n",
                    head.name(), head.kind(), head.largest, head.evenness, head.order, head.loss,
                    translated > 0 ? fmt::format(", {:+.1f} BLEU", head.bleu) : "");
  }
  result.values = {{"model", source.name},
                   {"loss", loss},
                   {"bleu", bleu},
                   {"heads", all},
                   {"most_needed", by_need.front().name()},
                   {"least_needed", by_need.back().name()}};
  result.claims.push_back({"every share is one", "from 0 to 1", "as measured",
                           std::all_of(heads.begin(), heads.end(), [](const HeadFacts& h) {
                             return h.largest >= 0 && h.largest <= 1.0001 && h.evenness >= 0 &&
                                    h.evenness <= 1.0001 && h.order <= 1.0001;
                           })});
  const double again = mean_loss(decoder, translator->format(), pairs);
  result.claims.push_back(near("with all heads back the loss is what it was", loss, again, 1e-6));
  const double most = std::max(by_need.front().loss, 1e-9);
  result.figures.push_back({"trained-largest", "Mean largest weight: near 1 a head copies",
                            map_of(heads, c, &HeadFacts::largest, 1)});
  result.figures.push_back(
      {"trained-even", "Evenness: near 1 a head averages", map_of(heads, c, &HeadFacts::evenness, 1)});
  result.figures.push_back({"trained-order", "Weight at the best fixed distance: near 1 a head follows order",
                            map_of(heads, c, &HeadFacts::order, 1)});
  result.figures.push_back(
      {"trained-need",
       fmt::format("Loss without each head, as a share of the most needed one's ({:+.3f})",
                   by_need.front().loss),
       map_of(heads, c, &HeadFacts::loss, most)});
  return result;
}

}  // namespace calque
