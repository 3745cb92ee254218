#include "calque/runs/train_config.h"

#include "calque/base/error.h"

namespace calque {

namespace {

Field zero_if_auto(Field field) {
  field.type += ", or auto";
  nlohmann::json automatic;
  automatic["const"] = "auto";
  field.schema["anyOf"].push_back(automatic);
  field.read = [read = field.read](const YAML::Node& node, const std::filesystem::path& folder) {
    read(node.IsScalar() && node.Scalar() == "auto" ? YAML::Node(0) : node, folder);
  };
  return field;
}

}  // namespace

Fields fields(TrainConfig& c) {
  return {
      field("batch_tokens", c.batch_tokens, at_least(8), "source and target tokens per step"),
      field("micro_batch_tokens", c.micro_batch_tokens, at_least(0),
            "gradient accumulation: compute a step in parts of this many tokens, to save memory; 0: all at "
            "once"),
      field("gradient_checkpointing", c.gradient_checkpointing,
            "store only the input of each block and recompute the rest: less memory, a third more time")
          .formerly("recompute"),
      field("steps", c.steps, at_least(0),
            "limit: optimizer steps; 0: none (20,000 where no limit is set). The first limit reached ends "
            "the run"),
      field("epochs", c.epochs, at_least(0.0), "limit: passes over data.train; 0: none"),
      field("tokens", c.tokens, at_least(0), "limit: source and target tokens; 0: none"),
      field("minutes", c.minutes, "limit: wall-clock time, which the schedule then follows; 0: none"),
      field("optimizer", c.optimizer,
            "muon: for the matrices inside blocks, with adamw for all other parameters"),
      field("muon_method", c.muon_method,
            "how Muon orthogonalises an update: polar_express takes three iterations on preconditioned rows, "
            "each "
            "with coefficients of its own; newton_schulz takes five with the same, as torch.optim.Muon does"),
      field("learning_rate", c.learning_rate, above(0.0), "peak learning rate, after the warm-up"),
      field("warmup_steps", c.warmup_steps, at_least(0), "steps of linear warm-up"),
      field("schedule", c.schedule,
            "decay after the warm-up; constant decays in the last decay_fraction only"),
      field("decay_fraction", c.decay_fraction, between(0.0, 1.0),
            "fraction of the run in which a constant schedule decays")
          .formerly("decay_share"),
      field("final_lr_fraction", c.final_lr_fraction, between(0.0, 1.0),
            "learning rate at the end, as a fraction of the peak")
          .formerly("final_share"),
      field("beta1", c.beta1, from_below(0.0, 1.0), "AdamW's beta1; Muon's momentum is 0.95"),
      field("beta2", c.beta2, from_below(0.0, 1.0), "AdamW's beta2"),
      field("epsilon", c.epsilon, above(0.0), "AdamW's epsilon"),
      field("weight_decay", c.weight_decay, at_least(0.0), "decoupled weight decay of the matrices"),
      field("max_grad_norm", c.max_grad_norm, at_least(0.0), "clip the gradient to this norm; 0: off")
          .formerly("clip"),
      field("label_smoothing", c.label_smoothing, from_below(0.0, 1.0), "label smoothing"),
      field("ema_decay", c.ema_decay, from_below(0.0, 1.0),
            "decay of the exponential moving average of the weights, which is saved and validated; 0: off")
          .formerly("ema"),
      field("precision", c.precision,
            "precision of the matrix products; weights and sums stay float32. auto: bfloat16 on processors "
            "with "
            "instructions for it (calque --version), else float32. float16 is for GPUs without bfloat16; it "
            "scales the loss"),
      field("device", c.device,
            "cpu, cuda, cuda:1, mps or another that LibTorch has; auto: a GPU if there is one, else cpu"),
      zero_if_auto(field("threads", c.threads, between(0, 1024),
                         "processor threads; auto (0): all cores that the process may use. Results do not "
                         "depend on it, unless the model has layer norms or "
                         "biases: then they differ in rounding")),
      field("log_every", c.log_every, at_least(1), "steps between lines of metrics"),
      field("validate_every", c.validate_every, at_least(0), "steps between validations; 0: at the end only"),
      field(
          "validate_sentences", c.validate_sentences, at_least(0),
          "sentences of data.valid translated per validation (greedy search), for BLEU and samples; 0: none"),
      field("best_by", c.best_by, "validation metric that selects the best checkpoint and drives patience"),
      field("patience", c.patience, at_least(0), "early stopping: validations without improvement; 0: never"),
      field("checkpoint_every", c.checkpoint_every, at_least(0),
            "steps between checkpoints; 0: at the end only"),
      field("keep_checkpoints", c.keep_checkpoints, at_least(1),
            "newest checkpoints to keep, beside the best"),
      field("max_nonfinite_steps", c.max_nonfinite_steps, at_least(1),
            "give up after this many consecutive steps with a NaN or infinite gradient")
          .formerly("stop_after_bad_steps"),
      field("overfit_batch", c.overfit_batch,
            "train on a single batch, to see whether the model can learn at all"),
      field("tensorboard", c.tensorboard, "also write TensorBoard event files into the run"),
  };
}

void check_train(const TrainConfig& c) {
  if (c.best_by == BestBy::bleu && c.validate_sentences == 0) {
    throw UserError("train.best_by=bleu needs train.validate_sentences above 0");
  }
  if (c.micro_batch_tokens > c.batch_tokens) {
    throw UserError(fmt::format("train.micro_batch_tokens={} is larger than train.batch_tokens={}",
                                c.micro_batch_tokens, c.batch_tokens));
  }
  if (c.steps > 0 && c.warmup_steps >= c.steps && !c.overfit_batch) {
    throw UserError(
        fmt::format("train.warmup_steps={} is not less than train.steps={}", c.warmup_steps, c.steps),
        fmt::format("set train.warmup_steps={} too", c.steps / 10));
  }
}

}  // namespace calque
