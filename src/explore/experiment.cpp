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
       {{"n", {8, "number of keys"}}, {"t", {10, "scale of the query"}}},
       copy_experiment},
      {"average",
       "a query between two keys averages their values; a projection recovers one of them",
       {{"n", {8, "number of keys"}}, {"t", {12, "scale of the query"}}},
       average_experiment},
      {"single-head",
       "keys of random length: one head jumps between two values",
       {{"n", {8, "number of keys"}},
        {"t", {10, "scale of the query"}},
        {"samples", {20000, "random draws of the keys"}},
        {"alpha", {1e-6, "variance of all keys"}}},
       single_head_experiment},
      {"multi-head",
       "two heads, one for each value: the mean of their outputs is stable",
       {{"n", {8, "number of keys"}},
        {"t", {10, "scale of the queries"}},
        {"samples", {20000, "random draws of the keys"}},
        {"alpha", {1e-6, "variance of all keys"}}},
       multi_head_experiment},
      {"key-query-value",
       "separate matrices: which word to attend to and what to take from it become independent",
       {{"beta", {20, "length of the vectors that words are sums of"}}},
       key_query_value_experiment},
      {"scale",
       "why scores are divided by the square root of the head size",
       {{"samples", {20000, "random draws of query and key"}}, {"n", {64, "number of keys in the softmax"}}},
       scale_experiment},
      {"trained",
       "the heads of a trained model: what each attends to, and what its removal costs",
       {{"sentences", {100, "validation sentences to analyse"}},
        {"bleu", {50, "sentences to translate without each head; 0: none"}}},
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
                    "experiments: " + join(names, ", "));
  for (const auto& [key, parameter] : found->parameters) options.parameters[key] = parameter.value;
  for (const std::string& one : given) {
    const size_t equals = one.find('=');
    const std::string key = one.substr(0, equals);
    if (!found->parameters.contains(key)) {
      std::vector<std::string> known;
      for (const auto& [known_key, parameter] : found->parameters) known.push_back(known_key);
      throw UserError(fmt::format("{} has no parameter {}{}", name, key, did_you_mean(key, known)),
                      known.empty() ? "it has no parameters" : "its parameters: " + join(known, ", "));
    }
    const auto value = equals == std::string::npos ? std::nullopt : parse_number(one.substr(equals + 1));
    if (!value || *value < 0 || *value > 1e9)
      throw UserError(fmt::format("--set {}: expected a number from 0 to 1e9, as in {}={:g}", one, key,
                                  found->parameters.at(key).value));
    options.parameters[key] = *value;
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
