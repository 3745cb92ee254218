#include "calque/train/train_config.h"

#include "calque/base/error.h"

namespace calque {

Fields fields(TrainConfig& c) {
  return {
      field("batch_tokens", c.batch_tokens, at_least(8), "source and target tokens in one step"),
      field("micro_batch_tokens", c.micro_batch_tokens, at_least(0),
            "a step is computed in parts of this size, to save memory; 0: all at once"),
      field("recompute", c.recompute,
            "keep only what goes into each block, and compute its inside again for the gradients: less "
            "memory, a "
            "third more time"),
      field("steps", c.steps, at_least(0),
            "limit: optimizer updates; 0: none. The first limit that is reached ends the run"),
      field("epochs", c.epochs, at_least(0.0), "limit: passes over data.train; 0: none"),
      field("tokens", c.tokens, at_least(0), "limit: source and target tokens; 0: none"),
      field("minutes", c.minutes, "limit: time; the schedule then follows the clock; 0: none"),
      field("optimizer", c.optimizer, "muon: for the matrices inside blocks, adamw for the rest"),
      field("learning_rate", c.learning_rate, above(0.0), "peak learning rate, after the warm-up"),
      field("warmup_steps", c.warmup_steps, at_least(0), "steps over which the learning rate rises"),
      field("schedule", c.schedule, "how it falls after that; constant falls in the last decay_share only"),
      field("decay_share", c.decay_share, between(0.0, 1.0),
            "share of the run in which a constant schedule falls"),
      field("final_share", c.final_share, between(0.0, 1.0),
            "learning rate at the end, as a share of the peak"),
      field("beta1", c.beta1, from_below(0.0, 1.0),
            "decay of the gradient's running mean; muon's momentum is 0.95"),
      field("beta2", c.beta2, from_below(0.0, 1.0), "decay of its square's running mean"),
      field("epsilon", c.epsilon, above(0.0), "keeps the update from dividing by zero"),
      field("weight_decay", c.weight_decay, at_least(0.0),
            "pull of matrices towards zero, times the learning rate"),
      field("clip", c.clip, at_least(0.0), "largest norm of the gradient; 0: any"),
      field("label_smoothing", c.label_smoothing, from_below(0.0, 1.0),
            "share of the target spread over the vocabulary"),
      field("ema", c.ema, from_below(0.0, 1.0),
            "decay of a running mean of the weights, which is what is saved and validated; 0: none"),
      field("precision", c.precision,
            "of the matrix products; weights and sums stay float32. bfloat16 is fast where the processor has "
            "instructions for it (calque --version); auto: float32"),
      field("device", c.device, "where it runs; auto: a GPU if LibTorch has one"),
      field("threads", c.threads, between(0, 1024),
            "processor threads; 0: all cores. Other numbers give other roundings"),
      field("log_every", c.log_every, at_least(1), "steps between lines of metrics"),
      field("validate_every", c.validate_every, at_least(0), "steps between validations; 0: at the end only"),
      field(
          "validate_sentences", c.validate_sentences, at_least(0),
          "sentences of data.valid translated (greedily) at a validation, for its BLEU and samples; 0: none"),
      field("best_by", c.best_by, "what makes a checkpoint the best, and what patience waits for"),
      field("patience", c.patience, at_least(0),
            "validations without improvement before the run ends; 0: never"),
      field("checkpoint_every", c.checkpoint_every, at_least(0),
            "steps between checkpoints; 0: at the end only"),
      field("keep_checkpoints", c.keep_checkpoints, at_least(1), "newest checkpoints kept, beside the best"),
      field("stop_after_bad_steps", c.stop_after_bad_steps, at_least(1),
            "steps in a row without a finite gradient before the run gives up"),
      field("overfit_batch", c.overfit_batch,
            "train on one batch only, to see whether the model can learn at all"),
      field("tensorboard", c.tensorboard, "write TensorBoard event files into the run as well"),
  };
}

void check_train(const TrainConfig& c) {
  if (c.steps == 0 && c.epochs == 0 && c.tokens == 0 && c.minutes.value == 0) {
    throw UserError("train: no limit is set, so it would never end",
                    "set train.steps, train.epochs, train.tokens or train.minutes");
  }
  if (c.best_by == BestBy::bleu && c.validate_sentences == 0) {
    throw UserError("train.best_by=bleu needs train.validate_sentences above 0");
  }
  if (c.micro_batch_tokens > c.batch_tokens) {
    throw UserError(fmt::format("train.micro_batch_tokens={} is larger than train.batch_tokens={}",
                                c.micro_batch_tokens, c.batch_tokens));
  }
  if (c.steps > 0 && c.warmup_steps >= c.steps && !c.overfit_batch) {
    throw UserError(
        fmt::format("train.warmup_steps={} leaves nothing of train.steps={}", c.warmup_steps, c.steps));
  }
}

}  // namespace calque
