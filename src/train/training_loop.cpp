#include "calque/train/training_loop.h"

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
#include "calque/kernels/threads.h"
#include "calque/train/cooccurrence.h"
#include "calque/train/limits.h"
#include "calque/train/rank_check.h"
#include "calque/train/rank_prefetcher.h"
#include "calque/train/resume_check.h"
#include "calque/train/run_recorder.h"
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

// Every rank has one, and all make the same decisions at the same steps: what they decide by is the same on
// all (sums over ranks), or comes from rank 0 (its clock, its files).
class TrainingLoop {
 public:
  TrainingLoop(const RunConfig& config, const TrainingOptions& options)
      : config_(with_precision(config, options.group->world())),
        options_(options),
        group_(*options.group),
        recorder_(open_recorder()),
        cache_(options.cache(), num_threads()),
        limits_(config.train),
        tokenizer_(shared_tokenizer(
            group_,
            [&] { return options.resume ? resume_configuration() : choose_tokenizer(config_, cache_); })),
        device_(training_device(config.train, group_.world())),
        trainer_(shared_model(), config_.train, static_cast<uint64_t>(config.seed), device_, config_.finetune,
                 {options.group, config.distributed}) {
    group_.everywhere_in_turn([&] { validator_.emplace(config_, tokenizer_, cache_); });
  }

  // `auto` is decided where a run starts; elsewhere it may mean another precision.
  static RunConfig with_precision(RunConfig config, const World& world) {
    config.train.precision = training_precision(config.train, training_device(config.train, world));
    return config;
  }

  TrainingResult run() {
    const Interrupt interrupt;
    group_.everywhere([&] { identify(); });
    check_ranks_alike(group_, config_, identity_);
    if (options_.resume) restore();
    group_.everywhere([&] { check_corpora(); });
    BatchStreamOptions stream_settings = stream_options(config_);
    stream_settings.rank = group_.rank();
    stream_settings.ranks = group_.size();
    stream_settings.sampled =
        recorder_ ? recorder_->folder().path() / "sampled.tokens"
                  : cache_.folder() / fmt::format("sampled-{}-{}.tokens", config_.run, group_.rank());
    const TrainerState& at = trainer_.state();
    std::optional<BatchStream> stream;
    group_.everywhere_in_turn(
        [&] { stream.emplace(stream_settings, tokenizer_, cache_, at.epoch, at.epoch_step); });
    stream->set_epoch_steps(largest(stream->epoch_steps()));
    const CorpusCounts counts = count_pairs(*stream);
    group_.everywhere([&] {
      if (!recorder_) return;
      recorder_->start(config_, tokenizer_, state_);
      announce(counts);
      recorder_->start_metrics(config_, trainer_, state_);
    });
    const TrainingEnd end = train_until_done(*stream, interrupt);
    return finish(end);
  }

 private:
  std::unique_ptr<RunRecorder> open_recorder() {
    std::unique_ptr<RunRecorder> recorder;
    group_.everywhere([&] {
      if (group_.is_first()) recorder = std::make_unique<RunRecorder>(config_, options_);
    });
    return recorder;
  }

  std::shared_ptr<Decoder> shared_model() {
    std::shared_ptr<Decoder> model;
    group_.everywhere([&] {
      model = make_model(config_, tokenizer_, device_);
      if (!recorder_ || (options_.resume && recorder_->folder().has_checkpoints())) return;
      if (config_.finetune.init_embeddings == InitialEmbeddings::cooccurrence)
        initialise_embeddings(*model, config_.data.train, tokenizer_, config_.data.max_tokens,
                              static_cast<uint64_t>(config_.seed));
    });
    if (config_.finetune.init_embeddings == InitialEmbeddings::cooccurrence) {  // rank 0 has them
      group_.broadcast(model->embedding->weight.detach());
      if (model->output.defined()) group_.broadcast(model->output.detach());
    }
    return model;
  }

  // The stored tokenizer, once the changes to the stored configuration are known to be harmless.
  Tokenizer resume_configuration() {
    const RunFolder& folder = recorder_->folder();
    const auto edited = recorder_->check_edited();
    const auto changes = changed_keys(read_stored_run_config(folder.path()), config_);
    check_resumable(changes);
    for (const ConfigChange& change : changes)
      log::info("{}: {} until now, {} from here on", change.key, change.before, change.now);
    const fs::path kept_base = folder.path() / "base";
    if (!config_.finetune.init_from.empty() && fs::exists(kept_base)) {
      if (has_change(changes, "model.init_from") || has_change(edited, "model.init_from"))
        check_same_base(kept_base);
      config_.finetune.init_from = kept_base;
    }
    return Tokenizer::load(folder.tokenizer());
  }

  // Adapters mean nothing on another base model. The run keeps its own; another path may name the same one.
  void check_same_base(const fs::path& kept) const {
    const fs::path file = "model.safetensors", given = config_.finetune.init_from / file;
    if (!fs::exists(given)) throw UserError(fmt::format("model.init_from: {}: no such file", given.string()));
    if (hash_file(given) != hash_file(kept / file)) throw other_base(config_.finetune.init_from);
  }

  static UserError other_base(const fs::path& base) {
    return UserError(
        fmt::format("model.init_from: {}: not the base model that the run's adapters were trained on",
                    base.string()),
        "its checksum differs; bring the base model back, or start another run: run=NAME");
  }

  // What the run is trained on.
  void identify() {
    identity_.train_hash = corpus_identity(config_.data.train, cache_);
    identity_.valid_hash = corpus_identity(config_.data.valid, cache_);
    if (!config_.finetune.init_from.empty())
      identity_.base_hash = hex(hash_file(config_.finetune.init_from / "model.safetensors"));
    identity_.threads = num_threads();
    identity_.bfloat16 = has_bfloat16_instructions();
  }

  void restore() {
    std::optional<Checkpoint> checkpoint;
    group_.everywhere([&] {
      if (recorder_) checkpoint = recorder_->newest_checkpoint(config_.train, tokenizer_);
      if (checkpoint) check_base(*checkpoint);
    });
    const std::string progress =
        group_.from_first([&] { return checkpoint ? checkpoint->progress().dump() : ""; });
    if (progress.empty())
      return;  // stopped before the first one: it starts again at step 0, with the same result
    {
      const ProcessGroup::LongWork reading(group_);
      trainer_.restore(checkpoint ? &*checkpoint : nullptr);
    }
    state_ = RunState::from_json(json::parse(progress));
    saved_step_ = trainer_.state().step;
    if (recorder_) recorder_->restore_links(state_, saved_step_);
  }

  // Adapters continue on the base model that they were trained on.
  void check_base(const Checkpoint& checkpoint) const {
    const std::string before = checkpoint.adapter_base_hash();
    if (!before.empty() && before != identity_.base_hash) throw other_base(config_.finetune.init_from);
  }

  void check_corpora() {
    const auto check = [&](const char* key, const std::string& now, std::string& known) {
      if (!known.empty() && known != now) {
        throw UserError(
            fmt::format("{} is not the one that the run was started with; it cannot change on resume", key),
            "bring the corpus and its weights back, or start another run: run=NAME");
      }
      known = now;
    };
    check("data.train", identity_.train_hash, state_.train_hash);
    check("data.valid", identity_.valid_hash, state_.valid_hash);
  }

  int64_t largest(int64_t own) const {
    return group_.gather(torch::tensor({own}, torch::kInt64)).max().item<int64_t>();
  }

  struct CorpusCounts {
    int64_t pairs, skipped_long, skipped_empty, epoch_steps;
  };
  // Of the whole corpus: with shards, each rank knows its own.
  CorpusCounts count_pairs(const BatchStream& stream) const {
    const std::vector<double> own = {static_cast<double>(stream.pairs()),
                                     static_cast<double>(stream.skipped_long()),
                                     static_cast<double>(stream.skipped_empty())};
    const auto all = config_.data.shards > 1 ? group_.sum(own) : own;
    return {std::llround(all[0]), std::llround(all[1]), std::llround(all[2]), largest(stream.epoch_steps())};
  }

  void announce(const CorpusCounts& corpus) {
    const int64_t all = trainer_.decoder().parameter_count(), trained = trainer_.trained_parameter_count();
    log::info("{}: {} parameters{}, {}, {} per epoch{}", config_.run, format_count(all),
              trained < all ? fmt::format(", {} of them trained", format_count(trained)) : "",
              format_count(corpus.pairs, "pair"), format_count(corpus.epoch_steps, "step"),
              group_.is_alone() ? "" : fmt::format(", {} processes", group_.size()));
    if (corpus.skipped_long + corpus.skipped_empty > 0) {
      log::warn("data.train: {} longer than data.max_tokens={} and {} with an empty side are left out",
                format_count(corpus.skipped_long, "pair"), config_.data.max_tokens,
                format_count(corpus.skipped_empty));
    }
    if (validator_->skipped() > 0)
      log::warn("data.valid: {} longer than data.max_tokens={} or with an empty side are left out",
                format_count(validator_->skipped(), "pair"), config_.data.max_tokens);
    if (config_.train.precision == Precision::float16 && device_.is_cpu())
      log::warn("train.precision=float16 is slow on the CPU; it is meant for GPUs");
    if (options_.resume)
      log::info("resuming {} after step {}", recorder_->folder().path().string(),
                format_count(trainer_.state().step));
  }

  // Rank 0's clock counts, and an interrupt of any rank.
  bool agree(double own_seconds, const Interrupt& interrupt) {
    const auto sums = group_.sum({group_.is_first() ? own_seconds : 0, interrupt.requested() ? 1.0 : 0.0});
    state_.seconds = sums[0];
    return sums[1] > 0;
  }

  // One step, or as many local ones as make a round.
  TrainingEnd train_until_done(BatchStream& stream, const Interrupt& interrupt) {
    RankPrefetcher prefetcher(group_, [&] { return stream.next(); });
    const auto started = Clock::now();
    const double seconds_before = state_.seconds;
    for (;;) {
      const double done = limits_.fraction_done(trainer_.state(), state_.seconds);
      if (done >= 1) return TrainingEnd::limit;
      if (done >= options_.pause_at) return TrainingEnd::paused;
      if (config_.train.patience > 0 && state_.validations_without_gain >= config_.train.patience)
        return TrainingEnd::patience;
      round_start_ = trainer_.state().step;
      const double waited = prefetcher.waited_seconds(), communicated = group_.waited_seconds();
      const auto round_started = Clock::now();
      double learning_rate = 0;
      const StepResult result = make_round(prefetcher, learning_rate);
      const bool interrupted = agree(seconds_before + seconds_since(started), interrupt);
      if (result.skipped) report_nonfinite();
      if (recorder_) {
        const double waiting = prefetcher.waited_seconds() - waited;
        recorder_->metrics().record_step({result, learning_rate, seconds_since(round_started) - waiting,
                                          waiting, limits_.fraction_done(trainer_.state(), state_.seconds),
                                          state_.seconds, group_.waited_seconds() - communicated},
                                         trainer_.state());
      }
      if (options_.after_step) options_.after_step(trainer_.state(), state_.seconds, result.loss);
      if (is_due(config_.train.validate_every)) validate();
      if (is_due(config_.train.checkpoint_every) && saved_step_ != trainer_.state().step) save(false);
      if (interrupted) return TrainingEnd::interrupted;
    }
  }

  StepResult make_round(RankPrefetcher& prefetcher, double& learning_rate) {
    std::vector<StepResult> results;
    int64_t steps = group_.is_alone() ? 1 : config_.distributed.local_steps;
    if (config_.train.steps > 0) steps = std::min(steps, config_.train.steps - trainer_.state().step);
    for (int64_t i = 0; i < steps; ++i) {
      const double done = limits_.fraction_done(trainer_.state(), state_.seconds);
      learning_rate =
          config_.train.learning_rate * learning_rate_share(config_.train, trainer_.state().step, done);
      results.push_back(trainer_.step(prefetcher.next(), learning_rate));
      group_.note_progress();
    }
    return trainer_.end_round(results);
  }

  // With local steps: at the end of the round in which it was due.
  bool is_due(int64_t every) const {
    return every > 0 && trainer_.state().step / every > round_start_ / every;
  }

  void report_nonfinite() {
    const TrainerState& at = trainer_.state();
    if (at.loss_scale && recorder_) {
      log::warn("step {}: float16 overflow; the update was skipped, the loss scale is {:g} from here on",
                at.step, at.loss_scale->value);
    } else if (recorder_) {
      log::warn("step {}: the loss or its gradient is not finite; the update was skipped", at.step);
    }
    if (at.consecutive_nonfinite_steps < config_.train.max_nonfinite_steps) return;
    save(false);
    if (recorder_) recorder_->finish_saving();
    throw std::runtime_error(fmt::format(
        "{} consecutive steps without a finite gradient; stopped at step {}, the last checkpoint is "
        "kept. A lower train.learning_rate usually helps",
        at.consecutive_nonfinite_steps, at.step));
  }

  // Saves a checkpoint if it is the best so far.
  void validate() {
    if (validator_->empty()) return;
    const ProcessGroup::LongWork validating(group_);
    const int64_t step = trainer_.state().step;
    const ValidationResult result = validator_->validate(trainer_, state_.shown_samples);
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
    if (recorder_) recorder_->metrics().record(trainer_.state(), state_.seconds, result.to_json());
    log::info("step {}: validation loss {:.4f}, perplexity {:.2f}{}{} ({})", format_count(step), result.loss,
              std::exp(result.loss), result.bleu ? fmt::format(", BLEU {:.1f}", *result.bleu) : "",
              better ? ", the best so far" : "", format_seconds(result.seconds));
    const double guessing = std::log(static_cast<double>(tokenizer_.size()));
    if (!(result.loss < guessing + 1))
      log::warn(
          "the loss is above that of guessing ({:.1f}): the training diverges; a lower "
          "train.learning_rate usually helps",
          guessing);
    if (!result.samples.empty())
      log::info("  {} → {}", result.samples.front().source, result.samples.front().hypothesis);
    if (better) save(true);
  }

  void save(bool best) {
    const ProcessGroup::LongWork saving(group_);
    saved_step_ = trainer_.state().step;
    CheckpointContent content = trainer_.snapshot(tokenizer_);
    if (!recorder_) return;
    content.progress.update(state_.to_json());
    if (!content.adapters.empty()) {
      const LoraConfig& lora = config_.finetune.lora;
      content.config["calque"].update({{"base", fs::absolute(config_.finetune.init_from).string()},
                                       {"base_inside", "../../base"},
                                       {"base_hash", identity_.base_hash},
                                       {"lora",
                                        {{"rank", lora.rank},
                                         {"scale", lora.scale()},
                                         {"target_modules", lora.target_modules},
                                         {"first_layer", config_.finetune.freeze_layers}}}});
    }
    recorder_->save(saved_step_, std::move(content), best);
  }

  TrainingResult finish(TrainingEnd end) {
    clear_live_line();  // mutate: shows nothing without a terminal
    const int64_t step = trainer_.state().step;
    if (end != TrainingEnd::interrupted && state_.validated_step != step) validate();
    if (saved_step_ != step) save(false);
    TrainingResult result{end,
                          limits_.reached(trainer_.state(), state_.seconds).value_or(""),
                          options_.runs / config_.run,
                          trainer_.state(),
                          state_,
                          trainer_.decoder().parameter_count(),
                          trainer_.trained_parameter_count(),
                          !validator_->empty(),
                          validator_->translates()};
    group_.everywhere([&] {
      if (recorder_) recorder_->finish(config_, result, validator_->empty() ? step : -1);
    });
    if (end == TrainingEnd::interrupted) {
      const std::string runs =
          options_.runs == "runs" ? "" : "--runs " + shell_quoted(options_.runs.string()) + " ";
      log::info("interrupted after step {}; everything is saved: `calque {}resume {}` continues",
                format_count(step), runs, shell_quoted(config_.run));
    } else if (end == TrainingEnd::paused) {
      log::info("paused after step {}; everything is saved", format_count(step));
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
  ProcessGroup& group_;
  std::unique_ptr<RunRecorder> recorder_;  // rank 0's
  DataCache cache_;
  Limits limits_;
  Tokenizer tokenizer_;
  torch::Device device_;
  Trainer trainer_;
  std::optional<Validator> validator_;
  RankIdentity identity_;
  RunState state_;
  int64_t round_start_ = 0;  // the step before the present round
  int64_t saved_step_ = -1;
};

}  // namespace

json TrainingResult::to_json() const {
  constexpr const char* end_names[] = {"limit", "patience", "interrupted", "paused"};
  json all = trainer.to_json();
  all.update(state.to_json());
  all.erase("config");  // the run has it as a file
  all.update({{"run", run.filename().string()},
              {"end", end_names[static_cast<size_t>(end)]},
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
  ProcessGroup& group = *options.group;
  group.set_timeout(config.distributed.timeout_seconds);
  set_num_threads(config.train.threads, group.world().local_size);
  keep_freed_memory();  // mutate: speed
  group.everywhere([&] {
    if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to train on");
    check_data_files(config.data);
    check_shards(config, group.size());
  });
  if (group.is_first()) {
    for (const std::string& warning : config_warnings(config)) log::warn("{}", warning);
  }
  return TrainingLoop(config, options).run();
}

}  // namespace calque
