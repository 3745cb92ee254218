#include "calque/train/training_loop.h"

#include <chrono>
#include <cmath>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/units.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/data/batch_stream.h"
#include "calque/data/prefetcher.h"
#include "calque/kernels/threads.h"
#include "calque/runs/run_folder.h"
#include "calque/runs/run_report.h"
#include "calque/train/checkpoint_writer.h"
#include "calque/train/limits.h"
#include "calque/train/metrics_log.h"
#include "calque/train/resume_check.h"
#include "calque/train/run_setup.h"
#include "calque/train/schedule.h"
#include "calque/train/trainer.h"
#include "calque/train/validator.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

RunFolder::Mode folder_mode(const TrainingOptions& options) {
  return options.fresh    ? RunFolder::Mode::fresh
         : options.resume ? RunFolder::Mode::resume
                          : RunFolder::Mode::create;
}

// Of the content of a corpus and the weights of its parts, not of where its files lie.
std::string corpus_identity(const Corpus& corpus, DataCache& cache) {
  if (corpus.empty()) return "";
  Hasher hasher;
  hasher.add_value(cache.corpus_hash(corpus));
  for (const CorpusPart& part : corpus) {
    if (part.weight != 1) hasher.add_value(part.weight);
  }
  return hex(hasher.value());
}

class TrainingLoop {
 public:
  TrainingLoop(const RunConfig& config, const TrainingOptions& options)
      : config_(with_precision(config)),
        options_(options),
        folder_(options.runs / config.run, folder_mode(options)),
        cache_(options.cache(), num_threads()),
        limits_(config.train),
        tokenizer_(options.resume ? resume_configuration() : choose_tokenizer(config_, cache_)),
        device_(training_device(config.train)),
        trainer_(make_model(config_, tokenizer_, device_), config.train, static_cast<uint64_t>(config.seed),
                 device_, config_.finetune),
        writer_(folder_, config.train.keep_checkpoints),
        validator_(config_, tokenizer_, cache_) {}

  // `auto` is decided where a run starts; elsewhere it may mean another precision.
  static RunConfig with_precision(RunConfig config) {
    config.train.precision = training_precision(config.train, training_device(config.train));
    return config;
  }

  TrainingResult run() {
    const Interrupt interrupt;
    if (options_.resume) restore();
    check_corpora();
    BatchStreamOptions stream_settings = stream_options(config_);
    stream_settings.sampled = folder_.path() / "sampled.tokens";
    const TrainerState& at = trainer_.state();
    BatchStream stream(stream_settings, tokenizer_, cache_, at.epoch, at.epoch_step);
    record_start();
    announce(stream);
    MetricsLog metrics(folder_, config_, trainer_.decoder(), trainer_.state(), state_);
    const TrainingEnd end = train_until_done(stream, metrics, interrupt);
    return finish(end, metrics);
  }

 private:
  // The stored tokenizer, once the changes to the stored configuration are known to be harmless.
  Tokenizer resume_configuration() {
    const auto changes = changed_keys(read_stored_run_config(folder_.path()), config_);
    check_resumable(changes);
    for (const ConfigChange& change : changes)
      log::info("{}: {} until now, {} from here on", change.key, change.before, change.now);
    const fs::path kept_base = folder_.path() / "base";
    if (!config_.finetune.init_from.empty() && fs::exists(kept_base)) config_.finetune.init_from = kept_base;
    return Tokenizer::load(folder_.tokenizer());
  }

  void restore() {
    const auto checkpoint = newest_checkpoint(folder_.checkpoints(), folder_.id());
    if (!checkpoint) return;  // stopped before the first one: it starts again at step 0, with the same result
    check_base(*checkpoint);
    if (checkpoint->tokenizer().hash() != tokenizer_.hash()) {
      throw UserError(
          fmt::format("{}: not the tokenizer that the run was trained with", folder_.tokenizer().string()),
          fmt::format("copy the one of checkpoints/step-{} there", checkpoint->progress().value("step", 0)));
    }
    trainer_.restore(*checkpoint);
    state_ = RunState::from_json(checkpoint->progress());
    if (!state_.config_hash.empty() && state_.config_hash != hex(hash_file(folder_.config()))) {
      log::warn("{}: changed since the last checkpoint; was that on purpose? Otherwise it may be damaged",
                folder_.config().string());
    }
    saved_step_ = trainer_.state().step;
    // A kill may have come between the checkpoint and its links.
    if (state_.best_step >= 0) writer_.mark("best", state_.best_step);
    writer_.mark("last", saved_step_);
  }

  // Adapters continue on the base model that they were trained on.
  void check_base(const Checkpoint& checkpoint) {
    const std::string before = checkpoint.adapter_base_hash();
    if (!before.empty() && before != base_hash()) {
      throw UserError(fmt::format("{}: not the base model that the run's adapters were trained on",
                                  config_.finetune.init_from.string()),
                      "its checksum differs; bring the base model back");
    }
  }

  void check_corpora() {
    const auto check = [&](const char* key, const Corpus& corpus, std::string& known) {
      const std::string now = corpus_identity(corpus, cache_);
      if (!known.empty() && known != now) {
        throw UserError(
            fmt::format("{} is not the one that the run was started with; it cannot change on resume", key),
            "bring the corpus and its weights back, or start another run: run=NAME");
      }
      known = now;
    };
    check("data.train", config_.data.train, state_.train_hash);
    check("data.valid", config_.data.valid, state_.valid_hash);
  }

  // The configuration is written last: from here on the run exists.
  void record_start() {
    if (options_.fresh) folder_.clear();
    state_.run_id = folder_.id();
    if (!options_.resume) {
      write_file(folder_.path() / tokenizer_.file_name(), tokenizer_.serialized());
      if (config_.finetune.lora.rank > 0) keep_base();
    }
    RunConfig stored = config_;
    write_file(folder_.config(), show_config(fields(stored), folder_.path()));
    state_.config_hash = hex(hash_file(folder_.config()));
    folder_.keep();
    log::start_file(folder_.log());
  }

  // Adapters are useless without their base model: the run keeps it, as hard links where possible.
  void keep_base() {
    const fs::path base = folder_.path() / ".base.tmp";
    fs::remove_all(base);  // left behind by a killed start
    fs::create_directories(base);
    for (const auto& entry : fs::directory_iterator(config_.finetune.init_from)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && name != "state.safetensors")
        link_or_copy(fs::canonical(entry.path()), base);
    }
    replace_folder(base, folder_.path() / "base");
  }

  void announce(const BatchStream& stream) {
    const int64_t all = trainer_.decoder().parameter_count(), trained = trainer_.trained_parameter_count();
    const TokenStore& store = stream.store();
    log::info("{}: {} parameters{}, {} pairs, {} steps per epoch", config_.run, format_count(all),
              trained < all ? fmt::format(", {} of them trained", format_count(trained)) : "",
              format_count(store.pairs()), format_count(stream.epoch_steps()));
    if (store.skipped_long() + store.skipped_empty() > 0) {
      log::warn("data.train: {} pairs longer than data.max_tokens={} and {} with an empty side are left out",
                format_count(store.skipped_long()), config_.data.max_tokens,
                format_count(store.skipped_empty()));
    }
    if (validator_.skipped() > 0)
      log::warn("data.valid: {} pairs longer than data.max_tokens={} or with an empty side are left out",
                format_count(validator_.skipped()), config_.data.max_tokens);
    if (config_.train.precision == Precision::float16 && device_.is_cpu())
      log::warn("train.precision=float16 is slow on the CPU; it is meant for GPUs");
    if (options_.resume)
      log::info("resuming {} after step {}", folder_.path().string(), format_count(trainer_.state().step));
  }

  TrainingEnd train_until_done(BatchStream& stream, MetricsLog& metrics, const Interrupt& interrupt) {
    Prefetcher prefetcher([&]() -> std::optional<Batch> { return stream.next(); });
    const auto started = Clock::now();
    const double seconds_before = state_.seconds;
    for (;;) {
      const double done = limits_.fraction_done(trainer_.state(), state_.seconds);
      if (done >= 1) return TrainingEnd::limit;
      if (config_.train.patience > 0 && state_.validations_without_gain >= config_.train.patience)
        return TrainingEnd::patience;
      const double learning_rate =
          config_.train.learning_rate * learning_rate_share(config_.train, trainer_.state().step, done);
      const double waited = prefetcher.waited_seconds();
      const auto batch = prefetcher.next();
      const auto step_started = Clock::now();
      const StepResult result = trainer_.step(*batch, learning_rate);
      state_.seconds = seconds_before + seconds_since(started);
      if (result.skipped) report_nonfinite();
      metrics.record_step(
          {*batch, result, learning_rate, seconds_since(step_started), prefetcher.waited_seconds() - waited,
           limits_.fraction_done(trainer_.state(), state_.seconds), state_.seconds},
          trainer_.state());
      if (is_due(config_.train.validate_every)) validate(metrics);
      if (is_due(config_.train.checkpoint_every) && saved_step_ != trainer_.state().step) save(false);
      if (interrupt.requested()) return TrainingEnd::interrupted;
    }
  }

  bool is_due(int64_t every) const { return every > 0 && trainer_.state().step % every == 0; }

  void report_nonfinite() {
    const TrainerState& at = trainer_.state();
    if (at.loss_scale) {
      log::warn("step {}: float16 overflow; the update was skipped, the loss scale is {:g} from here on",
                at.step, at.loss_scale->value);
    } else {
      log::warn("step {}: the loss or its gradient is not finite; the update was skipped", at.step);
    }
    if (at.consecutive_nonfinite_steps < config_.train.max_nonfinite_steps) return;
    save(false);
    writer_.finish();
    throw std::runtime_error(fmt::format(
        "{} consecutive steps without a finite gradient; stopped at step {}, the last checkpoint is "
        "kept. A lower train.learning_rate usually helps",
        at.consecutive_nonfinite_steps, at.step));
  }

  // Saves a checkpoint if it is the best so far.
  void validate(MetricsLog& metrics) {
    if (validator_.empty()) return;
    const int64_t step = trainer_.state().step;
    const ValidationResult result = validator_.validate(trainer_, state_.shown_samples);
    state_.shown_samples += samples_per_validation;
    state_.validated_step = step;
    state_.valid_loss = result.loss;
    const bool lower_loss = result.loss < state_.best_valid_loss;
    if (lower_loss) state_.best_valid_loss = result.loss;
    const bool higher_bleu = result.bleu && *result.bleu > state_.best_valid_bleu;
    if (higher_bleu) state_.best_valid_bleu = *result.bleu;
    const bool better = result.bleu && config_.train.best_by == BestBy::bleu ? higher_bleu : lower_loss;
    if (better) state_.best_step = step;
    state_.validations_without_gain = better ? 0 : state_.validations_without_gain + 1;
    metrics.record(trainer_.state(), state_.seconds, result.to_json());
    log::info("step {}: validation loss {:.4f}, perplexity {:.2f}{}{} ({})", format_count(step), result.loss,
              std::exp(result.loss), result.bleu ? fmt::format(", BLEU {:.1f}", *result.bleu) : "",
              better ? ", the best so far" : "", format_seconds(result.seconds));
    if (!result.samples.empty())
      log::info("  {} → {}", result.samples.front().source, result.samples.front().hypothesis);
    if (better) save(true);
  }

  const std::string& base_hash() {
    if (base_hash_.empty()) base_hash_ = hex(hash_file(config_.finetune.init_from / "model.safetensors"));
    return base_hash_;
  }

  void save(bool best) {
    saved_step_ = trainer_.state().step;
    CheckpointContent content = trainer_.snapshot(tokenizer_);
    content.progress.update(state_.to_json());
    if (!content.adapters.empty()) {
      const LoraConfig& lora = config_.finetune.lora;
      content.config["calque"].update({{"base", fs::absolute(config_.finetune.init_from).string()},
                                       {"base_inside", "../../base"},
                                       {"base_hash", base_hash()},
                                       {"lora",
                                        {{"rank", lora.rank},
                                         {"scale", lora.scale()},
                                         {"target_modules", lora.target_modules},
                                         {"first_layer", config_.finetune.freeze_layers}}}});
    }
    writer_.write(saved_step_, std::move(content), best);
  }

  TrainingResult finish(TrainingEnd end, MetricsLog& metrics) {
    clear_live_line();  // mutate: shows nothing without a terminal
    const int64_t step = trainer_.state().step;
    if (end != TrainingEnd::interrupted && state_.validated_step != step) validate(metrics);
    if (saved_step_ != step) save(false);
    writer_.finish();
    flush_metrics(folder_.metrics());
    if (validator_.empty()) writer_.mark("best", step);
    write_run_report(folder_.path(), config_, trainer_.decoder().parameter_count());
    TrainingResult result{end,
                          limits_.reached(trainer_.state(), state_.seconds).value_or(""),
                          folder_.path(),
                          trainer_.state(),
                          state_,
                          trainer_.decoder().parameter_count(),
                          trainer_.trained_parameter_count(),
                          !validator_.empty(),
                          validator_.translates()};
    write_file(folder_.path() / "summary.json", result.to_json().dump(2) + "\n");
    if (end == TrainingEnd::interrupted) {
      log::info("interrupted after step {}; everything is saved: `calque resume {}` continues",
                format_count(step), config_.run);
    } else {
      log::info("done after step {} ({})", format_count(step),
                end == TrainingEnd::patience
                    ? fmt::format("{} validations without improvement", state_.validations_without_gain)
                    : result.reason);
    }
    log::stop_file();
    return result;
  }

  RunConfig config_;
  TrainingOptions options_;
  RunFolder folder_;
  DataCache cache_;
  Limits limits_;
  Tokenizer tokenizer_;
  torch::Device device_;
  Trainer trainer_;
  CheckpointWriter writer_;
  Validator validator_;
  RunState state_;
  int64_t saved_step_ = -1;
  std::string base_hash_;  // of the base model below adapters
};

}  // namespace

json TrainingResult::to_json() const {
  json all = trainer.to_json();
  all.update(state.to_json());
  all.update({{"run", run.filename().string()},
              {"end", end == TrainingEnd::limit      ? "limit"
                      : end == TrainingEnd::patience ? "patience"
                                                     : "interrupted"},
              {"reason", reason},
              {"minutes", state.seconds / 60},
              {"parameters", parameters},
              {"trained_parameters", trained_parameters}});
  if (!has_bleu) all.erase("best_valid_bleu");
  if (!has_validation) {
    all.erase("best_valid_loss");
    all.erase("valid_loss");
  }
  return all;
}

TrainingResult train(const RunConfig& config, const TrainingOptions& options) {
  set_num_threads(config.train.threads);
  keep_freed_memory();  // mutate: speed
  if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to train on");
  check_data_files(config.data);
  for (const std::string& warning : config_warnings(config)) log::warn("{}", warning);
  return TrainingLoop(config, options).run();
}

}  // namespace calque
