// A configuration that trains in a second or two, for tests of the loop.
#pragma once

#include "calque/runs/run_config.h"
#include "temporary_folder.h"

namespace calque {

inline RunConfig small_run(const TemporaryFolder& folder) {
  RunConfig config;
  config.run = "small";
  CorpusPart train, valid;
  train.pairs = source_folder() / "data/everyday/natural-train.tsv";
  valid.pairs = source_folder() / "data/everyday/natural-test.tsv";
  config.data.train = {train};
  config.data.valid = {valid};
  config.data.max_tokens = 100;
  config.tokenizer.path = source_folder() / "tests/golden/tokenizer/bpe.model";
  config.model.layers = 2;
  config.model.hidden_size = 32;
  config.model.heads = 2;
  config.model.mlp_size = 48;
  config.model.context_length = 128;
  config.train.batch_tokens = 512;
  config.train.steps = 30;
  config.train.warmup_steps = 5;
  config.train.learning_rate = 3e-3;
  config.train.validate_every = 10;
  config.train.checkpoint_every = 10;
  config.train.log_every = 5;
  config.train.threads = 2;
  (void)folder;
  return config;
}

}  // namespace calque
