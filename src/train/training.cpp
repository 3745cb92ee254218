#include "calque/train/training.h"
#include "calque/kernels/threads.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <chrono>
#include <cmath>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/data/batch_stream.h"
#include "calque/data/prefetcher.h"
#include "calque/data/prepared_data.h"
#include "calque/train/assembly.h"
#include "calque/train/evaluation.h"
#include "calque/train/event_file.h"
#include "calque/train/matrix_speed.h"
#include "calque/train/run_folder.h"
#include "calque/train/run_report.h"
#include "calque/train/schedule.h"
#include "calque/train/trainer.h"
#include "calque/train/trial.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t samples_shown = 4;  // translations that a validation keeps

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How much of the run is over, by the limit that is nearest.
double share_done(const TrainConfig& c, const TrainingProgress& p) {
  double share = 0;
  if (c.steps > 0) share = std::max(share, static_cast<double>(p.step) / static_cast<double>(c.steps));
  if (c.tokens > 0) share = std::max(share, static_cast<double>(p.tokens) / static_cast<double>(c.tokens));
  if (c.minutes.value > 0) share = std::max(share, p.seconds / (60 * c.minutes.value));
  if (c.epochs > 0 && p.epoch_steps > 0) {
    const double epochs =
        static_cast<double>(p.epoch) + static_cast<double>(p.epoch_step) / static_cast<double>(p.epoch_steps);
    share = std::max(share, epochs / c.epochs);
  }
  return share;
}

// What makes other tensors cannot change when a run goes on.
void check_unchanged(const RunConfig& before, const RunConfig& now) {
  const auto values = [](const RunConfig& given) {
    RunConfig config = given;
    config.model.dropout = 0;
    config.tokenizer.sampling = 0;
    std::vector<std::pair<std::string, std::string>> all;
    for (const Field& field : fields(config.model))
      all.emplace_back("model." + field.name, YAML::Dump(field.write({})));
    for (const Field& field : fields(config.tuning)) {
      if (field.name.starts_with("freeze") || field.name == "base_precision")
        all.emplace_back("model." + field.name, YAML::Dump(field.write({})));
    }
    all.emplace_back("model.lora.rank", std::to_string(config.tuning.lora.rank));
    all.emplace_back("model.lora.matrices", join(config.tuning.lora.matrices, ", "));
    for (const Field& field : fields(config.tokenizer)) {
      if (field.name != "path") all.emplace_back("tokenizer." + field.name, YAML::Dump(field.write({})));
    }
    all.emplace_back("seed", std::to_string(config.seed));
    all.emplace_back("data.max_tokens",
                     std::to_string(config.data.max_tokens));  // both: where in the order the run stands
    all.emplace_back("train.batch_tokens", std::to_string(config.train.batch_tokens));
    all.emplace_back("train.optimizer", std::string(name_of(config.train.optimizer)));
    all.emplace_back("train.ema", config.train.ema > 0 ? "on" : "off");
    return all;
  };
  const auto old_values = values(before), new_values = values(now);
  for (size_t i = 0; i < old_values.size(); ++i) {
    if (old_values[i].second != new_values[i].second) {
      throw UserError(fmt::format("{} is {} in the run and {} now; it cannot change on resume",
                                  old_values[i].first, old_values[i].second, new_values[i].second),
                      "set it back, or begin another run: run=NAME");
    }
  }
}

// The newest checkpoint that is whole.
std::optional<Checkpoint> newest_checkpoint(const RunFolder& folder) {
  for (const auto& [step, path] : list_checkpoints(folder.checkpoints())) {
    try {
      Checkpoint checkpoint(path);
      checkpoint.check_files();
      return checkpoint;
    } catch (const UserError& error) {
      log::warn("{}; trying the one before it", error.what());
    }
  }
  return std::nullopt;
}

// One run from its beginning, or from where it stopped, to its end.
class Run {
 public:
  Run(const RunConfig& config, const TrainingOptions& options)
      : config_(config),
        folder_(options.runs / config.run, options.fresh    ? RunFolder::Mode::fresh
                                           : options.resume ? RunFolder::Mode::resume
                                                            : RunFolder::Mode::create),
        cache_(options.runs / ".cache"),
        resuming_(options.resume),
        fresh_(options.fresh),
        tokenizer_(begin()),
        device_(choose_device(config.train.device)),
        trainer_(make_model(config, tokenizer_, device_), config.train, static_cast<uint64_t>(config.seed),
                 device_, rate_shares(config)),
        writer_(folder_.checkpoints(), config.train.keep_checkpoints),
        valid_(validation_batches(config, tokenizer_, cache_)) {
    if (!config.data.valid.empty() && !is_text(config.data.valid) && config.train.validate_sentences > 0)
      valid_text_ = read_test_set(config.data.valid, "valid", config.train.validate_sentences);
    const std::string train_hash = hex(hash_corpus(config.data.train));
    if (resuming_) resume();
    std::string& known = trainer_.progress().train_hash;
    if (!known.empty() && known != train_hash) {
      throw UserError("data.train is not what the run was begun with; it cannot change on resume",
                      "bring the corpus back as it was, or begin another run: run=NAME");
    }
    known = train_hash;
  }

  TrainingResult run() {
    TrainingProgress& progress = trainer_.progress();
    BatchStreamOptions options = stream_options(config_, cache_);
    options.sampled = folder_.path() / "sampled.tokens";
    BatchStream stream(options, tokenizer_, progress.epoch, progress.epoch_step);
    if (progress.epoch_steps == 0) progress.epoch_steps = stream.epoch_steps();
    record_start();
    const int64_t parameters = trainer_.decoder().parameter_count(), trained = trainer_.trained_parameters();
    log::info("{}: {} parameters{}, {} pairs, {} steps an epoch", config_.run, format_count(parameters),
              trained < parameters ? fmt::format(", {} of them trained", format_count(trained)) : "",
              format_count(stream.pairs()), format_count(stream.epoch_steps()));
    limit_flops_ = measure_matrix_speed(trainer_.decoder().config(),
                                        std::min<int64_t>(config_.train.batch_tokens, 4096));
    const TrainingEnd end = make_steps(stream);
    return finish(end);
  }

 private:
  TrainingEnd make_steps(BatchStream& stream) {
    TrainingProgress& progress = trainer_.progress();
    const Interrupt interrupt;
    Prefetcher prefetcher([&]() -> std::optional<Batch> { return stream.next(); });
    const auto started = Clock::now();
    const double seconds_before = progress.seconds;
    while (share_done(config_.train, progress) < 1) {
      if (config_.train.patience > 0 && progress.validations_without_gain >= config_.train.patience)
        return TrainingEnd::patience;
      const double rate =
          config_.train.learning_rate *
          learning_rate_share(config_.train, progress.step, share_done(config_.train, progress));
      const double waited = prefetcher.waited_seconds();
      const auto batch = prefetcher.next();
      const auto step_started = Clock::now();
      const StepResult result = trainer_.step(*batch, rate);
      progress.seconds = seconds_before + seconds_since(started);
      note_step(*batch, result, rate, seconds_since(step_started), prefetcher.waited_seconds() - waited);
      const bool validated = is_due(config_.train.validate_every) && validate();
      if (is_due(config_.train.checkpoint_every) && !validated) save(false);
      if (interrupt.requested()) return TrainingEnd::interrupted;
    }
    return TrainingEnd::limit;
  }

  Tokenizer begin() {
    if (!resuming_) return choose_tokenizer(config_, cache_);
    check_unchanged(read_run_config(folder_.config(), {}), config_);
    return Tokenizer::load(folder_.tokenizer());
  }

  // Once everything could be built: from here on the run exists. The configuration is written last and says
  // so.
  void record_start() {
    if (fresh_) folder_.clear();
    if (!resuming_) write_file(folder_.path() / tokenizer_.file_name(), tokenizer_.serialized());
    write_file(folder_.config(), show_config(fields(config_), folder_.path()));
    log::start_file(folder_.log());
    if (!resuming_) return;
    drop_metrics_after(folder_.metrics(), trainer_.progress().step);
    log::info("resuming {} after step {}", folder_.path().string(), format_count(trainer_.progress().step));
  }

  void resume() {
    const auto checkpoint = newest_checkpoint(folder_);
    if (!checkpoint) return;  // stopped before the first one: it begins at step 0, and comes out the same
    trainer_.restore(*checkpoint);
    if (trainer_.progress().best_step >= 0) writer_.mark_best(trainer_.progress().best_step);
    saved_step_ = trainer_.progress().step;
    for (const json& line : read_metrics(folder_.metrics())) {
      if (line.contains("valid_loss") && line["valid_loss"].is_number() &&
          line.value("step", int64_t{-1}) == saved_step_) {
        validated_step_ = saved_step_;
        valid_loss_ = line["valid_loss"].get<double>();
      }
    }
  }

  bool is_due(int64_t every) const { return every > 0 && trainer_.progress().step % every == 0; }

  double epochs_done() const {
    const TrainingProgress& p = trainer_.progress();
    return static_cast<double>(p.epoch) +
           static_cast<double>(p.epoch_step) / static_cast<double>(std::max<int64_t>(p.epoch_steps, 1));
  }

  void note_step(const Batch& batch, const StepResult& result, double rate, double step_seconds,
                 double waited_seconds) {
    const TrainingProgress& progress = trainer_.progress();
    if (result.skipped) {
      log::warn("step {}: the loss or its gradient is not finite; the update was left out", progress.step);
      if (progress.bad_steps_in_a_row >= config_.train.stop_after_bad_steps) {
        save(false);
        writer_.finish();
        throw std::runtime_error(fmt::format(
            "{} steps in a row without a finite gradient; stopped at step {}, the last checkpoint is kept. "
            "A lower train.learning_rate usually helps",
            progress.bad_steps_in_a_row, progress.step));
      }
    }
    if (!result.skipped) {
      window_.loss += result.loss * static_cast<double>(batch.labels.size());
      window_.labels += static_cast<double>(batch.labels.size());
    }
    window_.tokens += static_cast<double>(batch.rows());
    window_.seconds += step_seconds + waited_seconds;
    window_.waited += waited_seconds;
    const double loss_share = window_.tokens > 0 ? window_.labels / window_.tokens : 0.5;
    const double speed = window_.tokens / std::max(window_.seconds, 1e-9);
    const double limit_share = speed * training_flops_a_token(trainer_.decoder(), loss_share) / limit_flops_;
    const double loss = window_.labels > 0 ? window_.loss / window_.labels : std::nan("");
    const double done = share_done(config_.train, progress);
    const double left = done > 0 ? progress.seconds * (1 - done) / done : 0;
    const std::string line = fmt::format(
        "step {} · epoch {:.2f} · loss {:.3f} · rate {:.2g} · {} tokens/s ({:.0f} % of the matrix speed) · "
        "{} left",
        format_count(progress.step), epochs_done(), loss, rate, format_count(std::llround(speed)),
        limit_share * 100, format_seconds(left));
    if (seconds_since(last_shown_) > 0.2) {
      show_live_line(line);
      last_shown_ = Clock::now();
    }
    if (!is_due(config_.train.log_every)) return;
    json metrics = {{"step", progress.step},
                    {"epoch", epochs_done()},
                    {"tokens", progress.tokens},
                    {"seconds", progress.seconds},
                    {"learning_rate", rate},
                    {"gradient_norm", result.skipped ? json() : json(result.gradient_norm)},
                    {"tokens_per_second", speed},
                    {"share_of_limit", limit_share},
                    {"waited_seconds", window_.waited}};
    metrics["loss"] = std::isfinite(loss) ? json(loss) : json();
    record(metrics);
    if (!stderr_is_terminal() && seconds_since(last_plain_) > 30) {
      log::info("{}", line);
      last_plain_ = Clock::now();
    }
    window_ = {};
  }

  void record(const json& metrics) {
    append_metrics(folder_.metrics(), metrics);
    if (!config_.train.tensorboard) return;
    if (!events_) events_ = std::make_unique<EventFile>(folder_.path() / "tensorboard");
    for (const auto& [name, value] : metrics.items()) {
      if (name != "step" && value.is_number()) events_->add(metrics["step"], name, value.get<double>());
    }
  }

  // True if it saved a checkpoint, because this is the best yet.
  bool validate() {
    if (valid_.empty()) return false;
    TrainingProgress& progress = trainer_.progress();
    const auto started = Clock::now();
    valid_loss_ = trainer_.validate(valid_);
    json metrics = {{"step", progress.step},     {"epoch", epochs_done()},
                    {"tokens", progress.tokens}, {"seconds", progress.seconds},
                    {"valid_loss", valid_loss_}, {"valid_perplexity", std::exp(valid_loss_)}};
    const bool less = valid_loss_ < progress.best_valid_loss;
    if (less) progress.best_valid_loss = valid_loss_;
    bool more = false;
    if (valid_text_) {
      const double bleu = translate_samples(metrics);
      more = bleu > progress.best_valid_bleu;
      if (more) progress.best_valid_bleu = bleu;
    }
    const bool better = valid_text_ && config_.train.best_by == BestBy::bleu ? more : less;
    if (better) progress.best_step = progress.step;
    progress.validations_without_gain = better ? 0 : progress.validations_without_gain + 1;
    validated_step_ = progress.step;
    metrics["valid_seconds"] = seconds_since(started);
    record(metrics);
    log::info("step {}: validation loss {:.4f}, perplexity {:.2f}{}{} ({})", format_count(progress.step),
              valid_loss_, std::exp(valid_loss_),
              valid_text_ ? fmt::format(", BLEU {:.1f}", metrics["valid_bleu"].get<double>()) : "",
              better ? ", the best so far" : "", format_seconds(seconds_since(started)));
    if (metrics.contains("samples") && !metrics["samples"].empty()) {
      const json& sample = metrics["samples"].front();
      log::info("  {} → {}", sample["source"].get<std::string>(), sample["hypothesis"].get<std::string>());
    }
    if (better) save(true);
    return better;
  }

  // BLEU of a part of the validation set, translated greedily, and a few of its sentences, into `metrics`.
  double translate_samples(json& metrics) {
    std::vector<Translation> translations;
    trainer_.show_model([&](const std::shared_ptr<const Decoder>& decoder) {
      DecodeConfig greedy;
      greedy.beam = 1;
      translations = Translator(decoder, tokenizer_, greedy).translate_all(valid_text_->sources);
    });
    ScoredText text;
    for (size_t i = 0; i < translations.size(); ++i) {
      text.hypotheses.push_back(translations[i].text());
      text.references.push_back({valid_text_->references[i]});
    }
    ScoringOptions options;
    options.metrics = {"bleu"};
    options.resamples = 0;
    const double bleu = score_text(text, options).metrics.front().score;
    metrics["valid_bleu"] = bleu;
    metrics["samples"] = json::array();
    // Other sentences each time, so that the log shows more than a few.
    const auto count = static_cast<int64_t>(text.hypotheses.size());
    for (int64_t i = 0; i < std::min<int64_t>(samples_shown, count); ++i) {
      const auto at = static_cast<size_t>((shown_samples_ + i) % count);
      metrics["samples"].push_back({{"source", valid_text_->sources[at]},
                                    {"reference", valid_text_->references[at]},
                                    {"hypothesis", text.hypotheses[at]}});
    }
    shown_samples_ = (shown_samples_ + samples_shown) % count;
    return bleu;
  }

  const std::string& base_hash() {
    if (base_hash_.empty()) base_hash_ = hex(hash_file(config_.tuning.init_from / "model.safetensors"));
    return base_hash_;
  }

  void save(bool best) {
    saved_step_ = trainer_.progress().step;
    CheckpointContent content = trainer_.snapshot(tokenizer_);
    if (!content.adapters.empty()) {
      const LoraConfig& lora = config_.tuning.lora;
      content.config["calque"].update({{"base", fs::absolute(config_.tuning.init_from).string()},
                                       {"base_hash", base_hash()},
                                       {"lora",
                                        {{"rank", lora.rank},
                                         {"scale", lora.scale()},
                                         {"matrices", lora.matrices},
                                         {"first_layer", config_.tuning.freeze_layers}}}});
    }
    writer_.write(saved_step_, std::move(content), best);
  }

  TrainingResult finish(TrainingEnd end) {
    clear_live_line();
    TrainingProgress& progress = trainer_.progress();
    if (end != TrainingEnd::interrupted && validated_step_ != progress.step) validate();
    if (saved_step_ != progress.step) save(false);
    writer_.finish();
    if (valid_.empty()) writer_.mark_best(progress.step);
    write_run_report(folder_.path(), config_, trainer_.decoder().parameter_count());
    TrainingResult result{end, folder_.path(), progress.to_json()};
    result.summary.update({{"run", config_.run},
                           {"minutes", progress.seconds / 60},
                           {"parameters", trainer_.decoder().parameter_count()},
                           {"trained_parameters", trainer_.trained_parameters()}});
    write_file(folder_.path() / "summary.json", result.summary.dump(2) + "\n");
    if (!valid_text_) result.summary.erase("best_valid_bleu");
    if (valid_.empty()) {
      result.summary.erase("best_valid_loss");
    } else {
      result.summary["valid_loss"] = valid_loss_;
    }
    log::info("{} after step {}{}", end == TrainingEnd::interrupted ? "interrupted" : "done",
              format_count(progress.step),
              end == TrainingEnd::interrupted
                  ? "; everything is saved: `calque train CONFIG --resume` goes on"
                  : "");
    log::stop_file();
    return result;
  }

  struct Window {
    double loss = 0, labels = 0, tokens = 0, seconds = 0, waited = 0;
  };

  RunConfig config_;
  RunFolder folder_;
  fs::path cache_;
  bool resuming_;
  bool fresh_;
  Tokenizer tokenizer_;
  torch::Device device_;
  Trainer trainer_;
  CheckpointWriter writer_;
  std::vector<Batch> valid_;
  std::optional<TestSet> valid_text_;  // what is translated at a validation
  int64_t shown_samples_ = 0;
  std::unique_ptr<EventFile> events_;
  Window window_;  // since the last line of metrics
  double limit_flops_ = 1;
  std::string base_hash_;  // of the weights that adapters stand on
  double valid_loss_ = std::nan("");
  int64_t saved_step_ = -1;
  int64_t validated_step_ = -1;
  Clock::time_point last_shown_ = Clock::now();
  Clock::time_point last_plain_ = Clock::now();
};

}  // namespace

TrainingResult train(const RunConfig& config, const TrainingOptions& options) {
  use_threads(config.train.threads);
  keep_freed_memory();
  if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to learn from");
  return config.train.overfit_batch ? overfit_batch(config, options) : Run(config, options).run();
}

}  // namespace calque
