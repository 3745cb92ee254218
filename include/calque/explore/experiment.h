// Experiment: a few claims about attention, checked by running calque's own attention code. The result has
// the expected and the measured value of each claim, and figures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace calque {

struct Claim {
  std::string claim;
  std::string expected;
  std::string found;
  bool holds = false;
};

struct Figure {
  std::string name;  // of its file, without extension
  std::string title;
  std::string html;  // SVG or a table
};

struct ExperimentResult {
  std::string explanation;  // a few lines of text
  nlohmann::json values = nlohmann::json::object();
  std::vector<Claim> claims;
  std::vector<Figure> figures;

  bool holds() const;
};

struct ExperimentParameter {
  double value;  // default
  std::string meaning;
};

struct ExperimentOptions {
  std::map<std::string, double> parameters;  // all of the experiment's, by name
  uint64_t seed = 1;
  std::filesystem::path runs = "runs";
  std::string model;                    // for `trained`: a run or a checkpoint
  torch::Device device = torch::kCPU;   // for `trained`: where the model runs
  std::filesystem::path data = {};      // for `trained`: pairs to analyse; empty: the run's data.valid
  std::function<void()> check = [] {};  // called before each draw and each head; may throw

  double parameter(const std::string& name) const { return parameters.at(name); }
};

struct Experiment {
  std::string name;
  std::string summary;
  std::map<std::string, ExperimentParameter> parameters;  // parameters, by name
  ExperimentResult (*run)(const ExperimentOptions& options);
  bool needs_model = false;
};

const std::vector<Experiment>& all_experiments();

// given: parameters such as "t=8". An unknown experiment or parameter is a UserError that suggests the
// nearest name.
ExperimentResult run_experiment(const std::string& name, const std::vector<std::string>& given,
                                ExperimentOptions options);

nlohmann::json to_json(const std::string& name, const ExperimentResult& result);
std::string to_text(const std::string& name, const ExperimentResult& result);

ExperimentResult worked_example(const ExperimentOptions& options);
ExperimentResult copy_experiment(const ExperimentOptions& options);
ExperimentResult average_experiment(const ExperimentOptions& options);
ExperimentResult single_head_experiment(const ExperimentOptions& options);
ExperimentResult multi_head_experiment(const ExperimentOptions& options);
ExperimentResult key_query_value_experiment(const ExperimentOptions& options);
ExperimentResult scale_experiment(const ExperimentOptions& options);
ExperimentResult trained_experiment(const ExperimentOptions& options);

}  // namespace calque
