#include "calque/explore/experiment.h"

#include <fmt/format.h>

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/base/units.h"

namespace calque {

using nlohmann::json;

bool ExperimentResult::holds() const {
  return std::all_of(claims.begin(), claims.end(), [](const Claim& claim) { return claim.holds; });
}

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {
      {"worked-example",
       "three tokens by hand: queries, keys, values, scores, weights, output",
       {},
       worked_example},
      {"copy",
       "a query aligned with one key copies its value",
       {{"n", {8, "keys"}}, {"t", {10, "the query's scale"}}},
       copy_experiment},
      {"average",
       "a query between two keys averages their values; a projection takes one of them out again",
       {{"n", {8, "keys"}}, {"t", {12, "the query's scale"}}},
       average_experiment},
      {"single-head",
       "keys of uncertain length: one head swings between two values",
       {{"n", {8, "keys"}},
        {"t", {10, "the query's scale"}},
        {"samples", {20000, "draws of the keys"}},
        {"alpha", {1e-6, "spread of all keys"}}},
       single_head_experiment},
      {"multi-head",
       "two heads, one for each value: their mean stays put",
       {{"n", {8, "keys"}},
        {"t", {10, "the queries' scale"}},
        {"samples", {20000, "draws of the keys"}},
        {"alpha", {1e-6, "spread of all keys"}}},
       multi_head_experiment},
      {"key-query-value",
       "with matrices of their own, where to look and what to fetch come apart",
       {{"beta", {20, "length of the vectors that words are made of"}}},
       key_query_value_experiment},
      {"scale",
       "why scores are divided by the root of their width",
       {{"samples", {20000, "draws of query and key"}}, {"n", {64, "keys under the softmax"}}},
       scale_experiment},
      {"trained",
       "the heads of a trained model: what each looks at, and what is lost without it",
       {{"sentences", {100, "of the validation set"}},
        {"bleu", {50, "sentences translated without each head; 0: none"}}},
       trained_experiment,
       true},
  };
  return all;
}

ExperimentResult run_experiment(const std::string& name, const std::vector<std::string>& given,
                                ExperimentOptions options) {
  std::vector<std::string> names;
  for (const Experiment& one : all_experiments()) names.push_back(one.name);
  const auto& all = all_experiments();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Experiment& one) { return one.name == name; });
  if (found == all.end())
    throw UserError(fmt::format("{}: no such experiment{}", name, did_you_mean(name, names)),
                    "they are " + join(names, ", "));
  for (const auto& [knob, value] : found->knobs) options.knobs[knob] = value.value;
  for (const std::string& one : given) {
    const size_t equals = one.find('=');
    const std::string knob = one.substr(0, equals);
    if (!found->knobs.contains(knob)) {
      std::vector<std::string> known;
      for (const auto& [key, value] : found->knobs) known.push_back(key);
      throw UserError(fmt::format("{} has no knob {}{}", name, knob, did_you_mean(knob, known)),
                      known.empty() ? "it has none" : "it has " + join(known, ", "));
    }
    const auto value = equals == std::string::npos ? std::nullopt : parse_number(one.substr(equals + 1));
    if (!value || *value < 0 || *value > 1e9)
      throw UserError(fmt::format("--set {}: a number from 0 to 1e9 is wanted, as in {}={:g}", one, knob,
                                  found->knobs.at(knob).value));
    options.knobs[knob] = *value;
  }
  return found->run(options);
}

json to_json(const std::string& name, const ExperimentResult& result) {
  json claims = json::array();
  for (const Claim& claim : result.claims)
    claims.push_back({{"claim", claim.claim},
                      {"expected", claim.expected},
                      {"found", claim.found},
                      {"holds", claim.holds}});
  return {{"experiment", name}, {"values", result.values}, {"claims", claims}};
}

std::string to_text(const std::string& name, const ExperimentResult& result) {
  std::string text = name + "\n\n" + result.explanation + "\n";
  for (const Claim& claim : result.claims) {
    text += fmt::format("  {} {}\n      expected {}\n      found    {}\n", claim.holds ? "✓" : "✗",
                        claim.claim, claim.expected, claim.found);
  }
  return text;
}

}  // namespace calque
