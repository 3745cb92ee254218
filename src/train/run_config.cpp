#include "calque/train/run_config.h"

#include "calque/base/config.h"
#include "calque/convert/checkpoint.h"

namespace calque {

namespace {

// Where a run starts from stands first: what else is said of the model refines it.
Fields model_fields(RunConfig& c) {
  Fields all = fields(c.tuning);
  for (Field& field : fields(c.model)) all.push_back(std::move(field));
  return all;
}

// A checkpoint's own architecture is the start, which the file's keys then refine: they are read once more.
void start_from_checkpoint(RunConfig& config, const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  const std::filesystem::path base = config.tuning.init_from;
  if (base.empty() || !std::filesystem::exists(base / "config.json")) return;
  RunConfig again;
  again.model = Checkpoint(base).config();
  again.model.head_width = again.model.width_of_head();
  again.tokenizer.vocabulary = again.model.vocabulary;  // the base's own tokenizer is taken
  read_config(fields(again), file, overrides);
  config = again;
}

}  // namespace

Fields fields(RunConfig& c) {
  return {
      field("run", c.run, "the run's name: its folder is runs/NAME; empty: the configuration file's name"),
      field("seed", c.seed, at_least(0), "what everything random is drawn from"),
      section("data", fields(c.data), "where the sentences come from"),
      section("tokenizer", fields(c.tokenizer), "how text becomes pieces"),
      section("model", model_fields(c), "what the model is made of, or which one it starts from"),
      section("train", fields(c.train), "how it is trained"),
      section("decode", fields(c.decode), "how translations are searched for"),
  };
}

RunConfig read_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  RunConfig config;
  read_config(fields(config), file, overrides);
  start_from_checkpoint(config, file, overrides);
  if (config.run.empty()) config.run = file.stem().string();
  if (config.run.find('/') != std::string::npos || config.run.starts_with('.')) {
    throw UserError(fmt::format("{}: run: \"{}\" is no name for a folder", file.string(), config.run));
  }
  check_corpus(config.data.train, "data.train");
  check_corpus(config.data.valid, "data.valid");
  check_corpus(config.data.test, "data.test");
  check_train(config.train);
  check_tuning(config.tuning);
  check_decode(config.decode);
  ModelConfig model = config.model;
  model.vocabulary =
      config.tokenizer.vocabulary;  // the tokenizer's own number is not known yet, and changes nothing here
  check_model(model);
  return config;
}

}  // namespace calque
