#include "calque/train/tune_folder.h"

#include <set>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/json.h"
#include "calque/base/log.h"
#include "calque/train/resume_check.h"
#include "calque/train/run_setup.h"
#include "calque/train/search_space.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

constexpr int64_t draws_per_trial = 100;  // until the space counts as exhausted

std::string config_text(RunConfig config, const fs::path& folder) {
  return show_config(fields(config), folder);
}

struct PlannedTrial {
  Trial trial;
  std::optional<RunConfig> config;  // nothing if its settings do not fit together
};

// The configuration itself, then draws of the space. Two trials are never alike.
std::vector<PlannedTrial> draw_trials(const TuneOptions& options, const RunConfig& base,
                                      const SearchSpace& space) {
  std::vector<PlannedTrial> all = {{{}, base}};
  std::set<std::string> seen = {config_text(base, {})};
  const auto count = static_cast<size_t>(options.trials.value_or(TuneOptions::default_trials));
  const auto seed = static_cast<uint64_t>(options.seed.value_or(TuneOptions::default_seed));
  for (int64_t draw = 0; all.size() < count && draw < static_cast<int64_t>(count) * draws_per_trial; ++draw) {
    PlannedTrial planned;
    planned.trial.number = static_cast<int64_t>(all.size());
    planned.trial.settings = space.sample(seed, draw);
    std::vector<std::string> overrides = options.overrides;
    overrides.insert(overrides.end(), planned.trial.settings.begin(), planned.trial.settings.end());
    try {
      planned.config = read_run_config(options.config, overrides);
      if (!seen.insert(config_text(*planned.config, {})).second) continue;
    } catch (const UserError& error) {
      planned.trial.failure = error.what();
      if (!seen.insert(planned.trial.settings_text()).second) continue;
    }
    all.push_back(std::move(planned));
  }
  if (all.size() < count)
    log::warn("the space holds no more than {} different configurations; {} trials were asked for",
              all.size(), count);
  return all;
}

void check_corpora(const RunConfig& base) {
  if (base.data.train.empty()) throw UserError("data.train is empty: there is nothing to train on");
  if (base.data.valid.empty())
    throw UserError("data.valid is empty: a search ranks its trials by their loss on it");
  if (is_text(base.data.valid))
    throw UserError("data.valid is plain text: a search ranks its trials by their loss on pairs");
  check_data_files(base.data);
}

template <class T>
void check_same(const char* option, const std::optional<T>& given, const T& stored) {
  if (given && *given != stored)
    throw UserError(
        fmt::format("{} is {} in the search and {} now; it cannot change on resume", option, stored, *given),
        "leave it out, or start another search: run=NAME");
}

}  // namespace

TuneFolder::TuneFolder(const TuneOptions& options) {
  const RunConfig base = read_run_config(options.config, options.overrides);
  path_ = options.runs / (base.run + "-tune");
  if (fs::exists(path_ / "config.yaml"))
    throw UserError(fmt::format("{}: a run has this name", path_.string()), "choose another: run=NAME");
  const bool exists = fs::exists(path_ / "search.json");
  if (fs::exists(path_) && !exists)
    throw UserError(fmt::format("{}: exists, and is not a search", path_.string()),
                    "choose another name: run=NAME");
  if (exists && !options.resume && !options.fresh)
    throw UserError(fmt::format("{}: this search exists already", path_.string()),
                    "--resume continues it, run=NAME starts another, --fresh deletes it and starts again");
  if (!exists && options.resume)
    throw UserError(fmt::format("{}: there is no such search to resume", path_.string()),
                    "leave --resume out");
  check_corpora(base);
  training_device(base.train);  // refuses one that does not exist
  if (!options.resume) create(options, base);
  lock_.emplace(path_);
  if (options.resume) open(options, base);
}

void TuneFolder::create(const TuneOptions& options, const RunConfig& base) {
  if (options.minutes.has_value() == options.steps.has_value())
    throw UserError("how long may the search take?", "--minutes 30, or --steps 20000 of all trials together");
  const std::string space = options.space.empty() ? default_space(base) : read_file(options.space);
  const auto planned =
      draw_trials(options, base,
                  SearchSpace(space, options.space.empty() ? "the default space" : options.space.string()));
  state.unit = options.minutes ? BudgetUnit::seconds : BudgetUnit::steps;
  state.total = options.minutes ? *options.minutes * 60 : static_cast<double>(*options.steps);
  state.seed = options.seed.value_or(TuneOptions::default_seed);
  for (const PlannedTrial& one : planned) state.trials.push_back(one.trial);
  state.rungs();  // refuses a budget that is too small
  const fs::path final_path = path_;
  path_ = options.runs / fmt::format(".{}.tmp", final_path.filename().string());
  fs::remove_all(path_);  // left behind by a killed start
  fs::create_directories(path_ / "configs");
  for (const PlannedTrial& one : planned) {
    if (one.config) write_file(config_file(one.trial), config_text(*one.config, final_path / "configs"));
  }
  write_file(path_ / "space.yaml", space);
  save();
  if (fs::exists(final_path)) {
    if (const auto process = training_process(final_path))
      throw UserError(fmt::format("{}: {} is working on this search", final_path.string(), *process));
    remove_folder(final_path);
  }
  fs::rename(path_, final_path);
  path_ = final_path;
  sync_folder(options.runs);
}

void TuneFolder::open(const TuneOptions& options, const RunConfig& base) {
  const std::string file = (path_ / "search.json").string();
  const nlohmann::json stored = parse_json_object(read_file(file), file);
  state = read_json_values(file, [&] { return TuneState::from_json(stored); });
  const bool by_time = state.unit == BudgetUnit::seconds;
  check_same("--minutes", options.minutes, by_time ? state.total / 60 : 0.0);
  check_same("--steps", options.steps, by_time ? 0 : static_cast<int64_t>(state.total));
  check_same("--seed", options.seed, state.seed);
  check_same("--trials", options.trials, static_cast<int64_t>(state.trials.size()));
  if (!options.space.empty() && read_file(options.space) != read_file(path_ / "space.yaml"))
    throw UserError(
        fmt::format("{} is not the space that the search was started with", options.space.string()),
        "leave --space out, or start another search: run=NAME");
  for (const ConfigChange& change : changed_keys(config(state.trials.front()), base))
    log::warn("{}: the search has {}, {} has {}; kept as it is", change.key, change.before,
              options.config.string(), change.now);
}

fs::path TuneFolder::config_file(const Trial& trial) const {
  return path_ / "configs" / (trial.name() + ".yaml");
}

RunConfig TuneFolder::config(const Trial& trial) const { return read_run_config(config_file(trial), {}); }

void TuneFolder::save() const { write_file(path_ / "search.json", state.to_json().dump(2) + "\n"); }

}  // namespace calque
