#include "calque/runs/run_config.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/data/sequence.h"
#include "calque/kernels/threads.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

// The base model comes first: the keys after it override its architecture.
Fields model_fields(RunConfig& c) {
  Fields all = fields(c.finetune);
  for (Field& field : fields(c.model)) all.push_back(std::move(field));
  return all;
}

// A run's folder means its best checkpoint.
fs::path base_checkpoint(const fs::path& given) {
  const fs::path best = given / "checkpoints" / "best";
  return !fs::exists(given / "config.json") && fs::exists(best / "config.json") ? best : given;
}

// Reads once to learn the base model, and again with the base's architecture as the defaults.
template <class Read>
RunConfig read_with_base(const Read& read) {
  RunConfig config;
  read(config);
  const fs::path base = base_checkpoint(config.finetune.init_from);
  if (base.empty() || !fs::exists(base / "config.json")) return config;
  RunConfig again;
  again.model = Checkpoint(base).config();
  again.model.head_size = again.model.head_size_or_default();
  again.tokenizer.vocabulary = again.model.vocabulary;  // the base's own tokenizer is used
  // Room for the tokens around source and target.
  again.data.max_tokens =
      std::min(again.data.max_tokens, std::max<int64_t>(2, again.model.context_length - 32));
  read(again);
  again.finetune.init_from = base;
  return again;
}

void resolve(RunConfig& config) {
  TrainConfig& t = config.train;
  if (t.steps == 0 && t.epochs == 0 && t.tokens == 0 && t.minutes.value == 0) t.steps = default_steps;
}

void check_distributed(const DistributedConfig& config, const TrainConfig& train) {
  if (config.local_steps > 1 && train.ema_decay > 0) {
    throw UserError("train.ema_decay and distributed.local_steps exclude each other",
                    "averaging over processes has a similar effect");
  }
  if (config.local_steps > 1 && train.precision == Precision::float16) {
    throw UserError("train.precision=float16 and distributed.local_steps exclude each other",
                    "each process would have a loss scale of its own; train.precision=bfloat16 needs none");
  }
}

// Where the tokens around source and target are known before the tokenizer: <s> and <sep>.
void check_default_lengths(const RunConfig& config) {
  if (config.finetune.init_from.empty() && config.tokenizer.path.empty() && config.model.prompt.empty())
    check_longest_sequence(config, config.data.max_tokens + 2);
}

void check_consistency(const RunConfig& config) {
  if (config.run.find('/') != std::string::npos || config.run.starts_with('.')) {
    throw UserError(fmt::format("run: \"{}\" cannot be the name of a folder", config.run));
  }
  check_corpus(config.data.train, "data.train");
  check_corpus(config.data.valid, "data.valid");
  check_corpus(config.data.test, "data.test");
  check_train(config.train);
  check_distributed(config.distributed, config.train);
  check_finetune(config.finetune);
  check_decode(config.decode);
  check_prompt(config.model.prompt);
  if (!config.tokenizer.path.empty() && !config.finetune.init_from.empty())
    throw UserError("tokenizer.path and model.init_from exclude each other",
                    "a base model is used with the tokenizer that it was trained with");
  check_default_lengths(config);
  ModelConfig model = config.model;
  model.vocabulary = config.tokenizer.vocabulary;  // the real one is known only with the tokenizer
  check_model(model);
}

}  // namespace

Fields fields(RunConfig& c) {
  return {
      field("run", c.run, "name of the run, whose folder is runs/NAME; empty: the configuration file's name"),
      field("seed", c.seed, at_least(0), "random seed of everything: weights, data order, dropout"),
      section("data", fields(c.data), "the corpus"),
      section("tokenizer", fields(c.tokenizer), "the tokenizer"),
      section("model", model_fields(c), "the model, or the checkpoint to start from"),
      section("train", fields(c.train), "the training"),
      section("distributed", fields(c.distributed), "training on several processes or machines"),
      section("decode", fields(c.decode), "the search for translations"),
  };
}

namespace {

// Where a key was set: "command line", "configs/a.yaml:7", or nowhere.
std::optional<std::string> place_of_key(const std::string& key, const fs::path& file,
                                        const std::vector<std::string>& overrides) {
  for (const std::string& one : overrides) {
    if (one.starts_with(key + "=")) return "command line";
  }
  YAML::Node node = YAML::Load(read_file(file));
  std::istringstream parts(key);
  for (std::string part; std::getline(parts, part, '.');) {
    if (!node.IsMap() || !node[part].IsDefined()) return std::nullopt;
    node.reset(node[part]);
  }
  if (node.Mark().line < 0) return std::nullopt;
  return fmt::format("{}:{}", file.string(), node.Mark().line + 1);
}

// Where one of the keys was set that a message names: on the command line, or else in the file. The first of
// several.
std::string place_of(const std::string& message, const fs::path& file,
                     const std::vector<std::string>& overrides) {
  static const std::regex keys("\\brun\\b|(data|tokenizer|model|train|distributed|decode)((\\.[a-z_0-9]+)+)");
  std::string found = file.string();
  for (std::sregex_iterator key(message.begin(), message.end(), keys), end; key != end; ++key) {
    const auto place = place_of_key(key->str(), file, overrides);
    if (place == "command line") return *place;
    if (place && found == file.string()) found = *place;
  }
  return found;
}

}  // namespace

RunConfig read_run_config(const fs::path& file, const std::vector<std::string>& overrides) {
  RunConfig config = read_with_base([&](RunConfig& into) { read_config(fields(into), file, overrides); });
  if (config.run.empty()) config.run = file.stem().string();
  resolve(config);
  try {
    check_consistency(config);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", place_of(error.what(), file, overrides), error.what()),
                    error.help());
  }
  return config;
}

std::vector<std::string> config_warnings(const RunConfig& c) {
  std::vector<std::string> all;
  const auto warn = [&](bool condition, const char* text) {
    if (condition) all.emplace_back(text);
  };
  const TrainConfig defaults;
  const FinetuneConfig no_base;
  const bool lora = c.finetune.lora.rank > 0, base = !c.finetune.init_from.empty();
  warn(c.data.valid.empty() && c.train.patience > 0, "train.patience has no effect without data.valid");
  warn(c.train.validate_every == 0 && c.train.patience > 0,
       "train.patience has no effect without train.validate_every");
  warn(c.data.valid.empty() && c.train.best_by != defaults.best_by,
       "train.best_by has no effect without data.valid");
  warn(lora && c.train.optimizer == OptimizerKind::muon,
       "train.optimizer=muon has no effect on adapters: model.lora trains them with adamw");
  warn(!lora && (c.finetune.lora.alpha != 0 || c.finetune.lora.dropout != 0 ||
                 c.finetune.lora.target_modules != no_base.lora.target_modules),
       "model.lora.* has no effect without model.lora.rank");
  warn(!base && c.finetune.base_lr_scale != 1, "model.base_lr_scale has no effect without model.init_from");
  const TokenizerConfig tokenizer;
  warn(base && (c.tokenizer.kind != tokenizer.kind || c.tokenizer.nfkc != tokenizer.nfkc),
       "tokenizer.kind and nfkc have no effect beside model.init_from");
  warn((base || !c.tokenizer.path.empty()) &&
           (c.tokenizer.character_coverage != tokenizer.character_coverage ||
            c.tokenizer.train_lines != tokenizer.train_lines),
       "tokenizer.character_coverage and train_lines have no effect where a tokenizer is given");
  warn(base && c.model.vocabulary > 0 && c.tokenizer.vocabulary != c.model.vocabulary,
       "tokenizer.vocabulary has no effect beside model.init_from");
  warn(!c.tokenizer.path.empty() &&
           (c.tokenizer.kind != tokenizer.kind || c.tokenizer.nfkc != tokenizer.nfkc ||
            c.tokenizer.vocabulary != tokenizer.vocabulary),
       "tokenizer.kind, vocabulary and nfkc have no effect beside tokenizer.path");
  warn(c.train.optimizer != OptimizerKind::muon && c.train.muon_method != defaults.muon_method,
       "train.muon_method has no effect without train.optimizer=muon");
  warn(c.train.schedule != ScheduleKind::constant && c.train.decay_fraction != defaults.decay_fraction,
       "train.decay_fraction has no effect without train.schedule=constant");
  warn(c.data.valid.empty() && c.train.validate_sentences != defaults.validate_sentences,
       "train.validate_sentences has no effect without data.valid");
  warn(lora && (c.finetune.base_lr_scale != 1 || c.finetune.freeze_embeddings),
       "model.base_lr_scale and model.freeze_embeddings have no effect with model.lora: the base is frozen");
  const DecodeConfig decode;
  warn(!c.decode.sample && (c.decode.temperature != decode.temperature || c.decode.top_k != decode.top_k ||
                            c.decode.top_p != decode.top_p),
       "decode.temperature, top_k and top_p have no effect without decode.sample");
  const DistributedConfig distributed;
  warn(c.distributed.local_steps <= 1 &&
           (c.distributed.outer_learning_rate != distributed.outer_learning_rate ||
            c.distributed.outer_momentum != distributed.outer_momentum),
       "distributed.outer_learning_rate and outer_momentum have no effect without distributed.local_steps");
  for (const auto& [corpus, key] : {std::pair{&c.data.valid, "data.valid"}, {&c.data.test, "data.test"}}) {
    for (const CorpusPart& part : *corpus) {
      if (part.weight != 1) all.push_back(fmt::format("{}: a weight has no effect here", key));
    }
  }
  const auto cores = static_cast<int64_t>(available_cores());
  if (cores > 0 && c.train.threads > cores)
    all.push_back(fmt::format("train.threads={}, but this machine has {} cores: more threads are slower",
                              c.train.threads, cores));
  return all;
}

RunConfig read_stored_run_config(const fs::path& run, const std::vector<std::string>& overrides) {
  return read_stored_run_config(read_file(run / "config.yaml"), run, overrides);
}

RunConfig read_stored_run_config(const std::string& text, const fs::path& run,
                                 const std::vector<std::string>& overrides) {
  RunConfig config = read_with_base([&](RunConfig& into) {
    read_stored_config(fields(into), text, (run / "config.yaml").string(), run, overrides);
  });
  resolve(config);
  return config;
}

void check_longest_sequence(const RunConfig& config, int64_t tokens) {
  const DataConfig& data = config.data;
  if (tokens > config.model.context_length) {
    throw UserError(
        fmt::format("data.max_tokens={} makes sequences of up to {} tokens, but model.context_length={}",
                    data.max_tokens, tokens, config.model.context_length),
        "raise model.context_length or lower data.max_tokens");
  }
  if (tokens > config.train.batch_tokens / data.shards) {
    const std::string shared = data.shards > 1 ? fmt::format(", shared by data.shards={},", data.shards) : "";
    throw UserError(fmt::format("train.batch_tokens={}{} is too small for data.max_tokens={}, which makes "
                                "sequences of up to {} tokens",
                                config.train.batch_tokens, shared, data.max_tokens, tokens),
                    "raise train.batch_tokens or lower data.max_tokens");
  }
}

void check_data_files(const DataConfig& data) {
  check_corpus_files(data.train, "data.train");
  check_corpus_files(data.valid, "data.valid");
}

}  // namespace calque
