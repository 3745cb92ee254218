// Experiment: a claim about attention that runs. Each computes its numbers through the product's own
// attention (kernels and model), says what was expected and what came out, and draws it.
#pragma once

#include <cstdint>
#include <filesystem>
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
  std::string name;  // a file's, without its ending
  std::string title;
  std::string html;  // SVG or a table
};

struct ExperimentResult {
  std::string explanation;  // a few lines for people
  nlohmann::json values = nlohmann::json::object();
  std::vector<Claim> claims;
  std::vector<Figure> figures;

  bool holds() const;
};

struct Knob {
  double value;
  std::string meaning;
};

// What an experiment is told.
struct ExperimentOptions {
  std::map<std::string, double> knobs;  // all of the experiment's, by name
  uint64_t seed = 1;
  std::filesystem::path runs = "runs";
  std::string model;  // for `trained`: a run or a checkpoint

  double knob(const std::string& name) const { return knobs.at(name); }
};

struct Experiment {
  std::string name;
  std::string summary;
  std::map<std::string, Knob> knobs;
  ExperimentResult (*run)(const ExperimentOptions& options);
  bool needs_model = false;
};

const std::vector<Experiment>& all_experiments();

// By its name; `given` are «t=8» and the like. An unknown name or knob is a UserError with the nearest one.
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
