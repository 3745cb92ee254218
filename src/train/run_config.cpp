#include "calque/train/run_config.h"

#include "calque/base/config.h"

namespace calque {

Fields fields(RunConfig& c) {
  return {
      field("run", c.run, "the run's name: its folder is runs/NAME; empty: the configuration file's name"),
      field("seed", c.seed, at_least(0), "what everything random is drawn from"),
      section("data", fields(c.data), "where the sentences come from"),
      section("tokenizer", fields(c.tokenizer), "how text becomes pieces"),
      section("model", fields(c.model), "what the model is made of"),
      section("train", fields(c.train), "how it is trained"),
      section("decode", fields(c.decode), "how translations are searched for"),
  };
}

RunConfig read_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  RunConfig config;
  read_config(fields(config), file, overrides);
  if (config.run.empty()) config.run = file.stem().string();
  if (config.run.find('/') != std::string::npos || config.run.starts_with('.')) {
    throw UserError(fmt::format("{}: run: \"{}\" is no name for a folder", file.string(), config.run));
  }
  check_corpus(config.data.train, "data.train");
  check_corpus(config.data.valid, "data.valid");
  check_corpus(config.data.test, "data.test");
  check_train(config.train);
  check_decode(config.decode);
  ModelConfig model = config.model;
  model.vocabulary =
      config.tokenizer.vocabulary;  // the tokenizer's own number is not known yet, and changes nothing here
  check_model(model);
  return config;
}

}  // namespace calque
