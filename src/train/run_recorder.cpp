#include "calque/train/run_recorder.h"

#include <limits>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/runs/run_report.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

RunFolder::Mode folder_mode(const TrainingOptions& options) {
  return options.fresh    ? RunFolder::Mode::fresh
         : options.resume ? RunFolder::Mode::resume
                          : RunFolder::Mode::create;
}

}  // namespace

RunRecorder::RunRecorder(const RunConfig& config, const TrainingOptions& options)
    : options_(options),
      folder_(options.runs / config.run, folder_mode(options)),
      writer_(folder_, config.train.keep_checkpoints) {}

// A run that was stopped before its first checkpoint begins again. One that has had checkpoints must not: its
// metrics would be lost. Steps after the second one was due are made only if the first is complete.
void RunRecorder::check_never_saved(const TrainConfig& config) const {
  int64_t step = 0, second = std::numeric_limits<int64_t>::max();
  for (const auto& line : read_metrics(folder_.metrics()))
    step = std::max(step, line.value("step", int64_t{0}));
  for (const int64_t every : {config.checkpoint_every, config.validate_every})
    if (every > 0) second = std::min(second, 2 * every);
  if (step > second || fs::exists(folder_.path() / "summary.json")) {
    throw UserError(fmt::format("{}: the run has reached step {}, but there is no checkpoint",
                                folder_.checkpoints().string(), step),
                    "bring the checkpoints back; --fresh deletes the run and starts again");
  }
}

std::optional<Checkpoint> RunRecorder::newest_checkpoint(const TrainConfig& config,
                                                         const Tokenizer& tokenizer) const {
  if (!newest_) {
    check_never_saved(config);
    return newest_;
  }
  if (newest_->tokenizer().hash() != tokenizer.hash()) {
    throw UserError(
        fmt::format("{}: not the tokenizer that the run was trained with", folder_.tokenizer().string()),
        fmt::format("copy the one of checkpoints/step-{} there", newest_->progress().value("step", 0)));
  }
  return newest_;
}

namespace {

// The run's configuration as it is now, read as strictly as one of a person: somebody has edited it. The keys
// of an earlier version are as it wrote them.
RunConfig read_edited(const fs::path& file, const std::string& before) {
  try {
    return read_run_config(file, {});
  } catch (const UserError&) {
    RunConfig probe;
    try {
      read_config_text(fields(probe), before, file.string(), file.parent_path(), {});
    } catch (const UserError&) {
      return read_stored_run_config(file.parent_path());
    }
    throw;
  }
}

}  // namespace

std::vector<ConfigChange> RunRecorder::check_edited() {
  newest_ = calque::newest_checkpoint(folder_.checkpoints(), folder_.id());
  const std::string before = newest_ ? newest_->progress().value("config", "") : "";
  const std::string file = folder_.config().string();
  if (before.empty() || before == read_file(folder_.config())) return {};
  const auto changes =
      changed_keys(read_stored_run_config(before, folder_.path(), {}), read_edited(folder_.config(), before));
  try {
    check_resumable(changes);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", file, error.what()), error.help());
  }
  for (const ConfigChange& change : changes)
    log::warn("{}: {} was {} at the last checkpoint and is {} now", file, change.key, change.before,
              change.now);
  return changes;
}

void RunRecorder::restore_links(const RunState& state, int64_t step) {
  if (state.best_step >= 0) writer_.mark("best", state.best_step);
  writer_.mark("last", step);
}

// The configuration is written last: from here on the run exists.
void RunRecorder::start(const RunConfig& config, const Tokenizer& tokenizer, RunState& state) {
  if (options_.fresh) folder_.clear();
  state.run_id = folder_.id();
  if (!options_.resume) {
    if (!options_.job.empty()) write_file(folder_.job(), options_.job);
    write_file(folder_.path() / tokenizer.file_name(), tokenizer.serialized());
    if (config.finetune.lora.rank > 0) keep_base(config.finetune.init_from);
  }
  RunConfig stored = config;
  state.config = show_config(fields(stored), folder_.path());
  write_file(folder_.config(), state.config);
  folder_.keep();
  log::start_file(folder_.log());
}

// Adapters are useless without their base model: the run keeps it, as hard links where possible.
void RunRecorder::keep_base(const fs::path& init_from) {
  const fs::path base = folder_.path() / ".base.tmp";
  fs::remove_all(base);  // left behind by a killed start
  fs::create_directories(base);
  for (const auto& entry : fs::directory_iterator(init_from)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name != "state.safetensors")
      link_or_copy(fs::canonical(entry.path()), base);
  }
  replace_folder(base, folder_.path() / "base");
}

void RunRecorder::start_metrics(const RunConfig& config, const Trainer& trainer, const RunState& state) {
  metrics_ = std::make_unique<MetricsLog>(folder_, config, trainer.decoder(), trainer.state(), state,
                                          trainer.group().size());
}

void RunRecorder::save(int64_t step, CheckpointContent content, bool best) {
  writer_.write(step, std::move(content), best);
}

void RunRecorder::finish(const RunConfig& config, const TrainingResult& result, int64_t best) {
  writer_.finish();
  flush_metrics(folder_.metrics());
  if (best >= 0) writer_.mark("best", best);
  write_run_report(folder_.path(), config, result.parameters);
  write_file(folder_.path() / "summary.json", result.to_json().dump(2) + "\n");
}

}  // namespace calque
