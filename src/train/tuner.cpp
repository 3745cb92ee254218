#include "calque/train/tuner.h"

#include <chrono>
#include <cmath>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/quiet_log.h"
#include "calque/data/data_cache.h"
#include "calque/kernels/threads.h"
#include "calque/runs/model_source.h"
#include "calque/train/reference_loss.h"
#include "calque/train/run_setup.h"
#include "calque/train/training_loop.h"
#include "calque/train/tune_progress.h"
#include "calque/train/tune_report.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// LibTorch's messages go on with where in itself they were raised.
std::string first_part(const std::string& message) {
  return message.substr(0, message.find("\nException raised from"));
}

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options)
      : options_(options),
        folder_(options),
        rungs_(folder_.state.rungs()),
        references_(folder_.config(state().trials.front()).data.valid),
        progress_(folder_.state, folder_.path().filename().string()) {}

  TuneResult run() {
    log::info("{}: {} trials, {}", folder_.path().string(), state().trials.size(),
              plan_text(rungs_, state().unit));
    agree_on_pairs();
    for (size_t rung = state().complete_rungs(); rung < rungs_.size() && !interrupt_.requested(); ++rung)
      run_rung(rung);
    progress_.clear();
    publish();
    if (!interrupt_.requested() && !state().best())
      throw UserError("every trial failed; the first one: " + state().trials.front().failure);
    return {interrupt_.requested(), folder_.path(), folder_.best(), folder_.report(), state()};
  }

 private:
  TuneState& state() { return folder_.state; }
  DataCache open_cache() const { return {options_.runs / ".cache", num_threads()}; }

  // All trials are measured on the same pairs: those that each of them can read.
  void agree_on_pairs() {
    for (Trial& trial : state().trials) {
      if (!trial.failure.empty() || interrupt_.requested()) continue;
      attempt(trial, [&] {
        const RunConfig config = folder_.config(trial);
        check_train(trial_config(config, trial, rungs_.back(), state().unit).train);
        set_num_threads(config.train.threads);
        DataCache cache = open_cache();
        const Tokenizer tokenizer = choose_tokenizer(config, cache);
        references_.require(tokenizer, pair_format(tokenizer, config.model.prompt),
                            config.model.context_length);
      });
    }
    if (references_.pairs() == 0)
      throw UserError("data.valid: no pair fits the context of every trial", "raise model.context_length");
    if (references_.left_out() > 0)
      log::warn("data.valid: {} pairs are too long for some trial and left out", references_.left_out());
  }

  // A trial that cannot be trained ends the search only if it is the given configuration: then the search has
  // nothing to start from. Failures of the machine (a full disk) say nothing about a trial.
  template <class Function>
  void attempt(Trial& trial, const Function& function) {
    try {
      function();
      return;
    } catch (const SystemError&) {
      throw;
    } catch (const fs::filesystem_error&) {
      throw;
    } catch (const UserError& error) {
      if (trial.number == 0) {
        if (trial.results.empty())
          fs::remove_all(folder_.path());  // a start that failed leaves nothing behind
        throw;
      }
      trial.failure = error.what();
    } catch (const std::exception& error) {
      trial.failure = first_part(error.what());
    }
    log::stop_file();
    folder_.save();
    progress_.clear();
    log::warn("trial {} failed: {}", trial.number, trial.failure);
  }

  void run_rung(size_t rung) {
    for (const size_t i : state().contenders(rung)) {
      Trial& trial = state().trials[i];
      if (trial.results.size() > rung || !trial.failure.empty()) continue;
      check_data_files(folder_.config(trial).data);  // missing files are no trial's fault
      attempt(trial, [&] { run_trial(i, rung); });
      if (interrupt_.requested()) return;
      publish();
    }
    drop_checkpoints();
  }

  void run_trial(size_t index, size_t rung) {
    Trial& trial = state().trials[index];
    TrainingOptions training;
    training.runs = folder_.path();
    training.shared_cache = options_.runs / ".cache";
    // One that was dropped has no checkpoints any more.
    const bool begun = fs::exists(folder_.run(trial) / "config.yaml");
    training.resume = begun && fs::exists(folder_.run(trial) / "checkpoints");
    training.fresh = begun && !training.resume;
    training.pause_at = rungs_[rung].budget / rungs_.back().budget;
    const TrialResult before = trial.results.empty() ? TrialResult{} : trial.results.back();
    const auto started = std::chrono::steady_clock::now();
    TrainingResult result;
    {
      QuietLog quiet;
      training.after_step = [&](const TrainerState& at, double seconds, double loss) {
        progress_.show({index, rung, at, seconds, loss}, quiet);
      };
      result = train(trial_config(folder_.config(trial), trial, rungs_.back(), state().unit), training);
    }
    if (interrupt_.requested()) return;
    const auto translator = open_translator({trial.name(), folder_.run(trial) / "checkpoints/last", {}, {}});
    const BitsPerByte loss = references_.measure(*translator);
    if (!std::isfinite(loss.bits_per_byte)) throw std::runtime_error("the validation loss is not finite");
    trial.results.push_back({loss.bits_per_byte, loss.tokens_per_byte, result.trainer.step,
                             result.trainer.tokens, result.trainer.epochs(), result.state.seconds});
    folder_.save();
    progress_.record(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
                     result.state.seconds - before.seconds,
                     static_cast<double>(result.trainer.step - before.step));
    warn_of_warmup(trial, result.trainer.step);
    progress_.report(trial, rung);
  }

  void warn_of_warmup(const Trial& trial, int64_t steps) {
    if (trial.number != 0 || trial.results.size() > 1) return;
    const int64_t warmup = folder_.config(trial).train.warmup_steps;
    if (warmup < steps) return;
    progress_.clear();
    log::warn(
        "the first rung ends after {} steps, within train.warmup_steps={}: it says little about the trials; "
        "allow more time, or a shorter warm-up",
        steps, warmup);
  }

  // The weights of trials that take no further part would fill the disk; all else of them stays.
  void drop_checkpoints() {
    for (size_t i = 0; i < state().trials.size(); ++i) {
      const fs::path checkpoints = folder_.run(state().trials[i]) / "checkpoints";
      if ((state().is_dropped(i) || !state().trials[i].failure.empty()) && fs::exists(checkpoints))
        remove_folder(checkpoints);
    }
  }

  void publish() {
    write_file(folder_.report(), tune_page(folder_));
    const auto best = state().best();
    if (!best) return;
    const Trial &found = state().trials[*best], &given = state().trials.front();
    RunConfig config = folder_.config(found);
    if (!given.results.empty())
      config = tuned_config(config, found.results.back(), given.results.back(), state().unit);
    config.run += "-tuned";
    write_file(folder_.best(), show_config(fields(config), folder_.path()));
  }

  const Interrupt interrupt_;
  TuneOptions options_;
  TuneFolder folder_;
  std::vector<Rung> rungs_;
  ReferenceLoss references_;
  TuneProgress progress_;
};

}  // namespace

json TuneResult::to_json() const {
  json all = state.to_json();
  all.update({{"folder", folder.string()},
              {"interrupted", interrupted},
              {"best", state.best() ? json(state.trials[*state.best()].number) : json()},
              {"best_config", best.string()},
              {"report", report.string()}});
  return all;
}

TuneResult tune(const TuneOptions& options) { return Tuner(options).run(); }

RunConfig trial_config(RunConfig config, const Trial& trial, const Rung& last, BudgetUnit unit) {
  config.run = trial.name();
  config.data.valid.clear();
  TrainConfig& train = config.train;
  train.steps = unit == BudgetUnit::steps ? std::llround(last.budget) : 0;
  train.minutes.value = unit == BudgetUnit::seconds ? last.budget / 60 : 0;
  train.epochs = 0;
  train.tokens = 0;
  train.best_by = BestBy::loss;
  train.patience = 0;
  train.keep_checkpoints = 1;
  train.overfit_batch = false;
  return config;
}

RunConfig tuned_config(RunConfig found, const TrialResult& best, const TrialResult& given, BudgetUnit unit) {
  if (unit == BudgetUnit::steps) return found;
  const double time = given.seconds / best.seconds;
  TrainConfig& train = found.train;
  const auto scale = [&](int64_t limit, int64_t best_done, int64_t given_done) {
    return std::llround(static_cast<double>(limit) * static_cast<double>(best_done) /
                        static_cast<double>(given_done) * time);
  };
  train.steps = scale(train.steps, best.step, given.step);
  train.tokens = scale(train.tokens, best.tokens, given.tokens);
  train.epochs *= best.epochs / given.epochs * time;
  return found;
}

}  // namespace calque
