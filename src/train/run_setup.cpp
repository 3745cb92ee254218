#include "calque/train/run_setup.h"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "calque/base/error.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/distributed/device_group.h"
#include "calque/kernels/device.h"
#include "calque/kernels/threads.h"
#include "calque/model/lora.h"

namespace calque {
namespace fs = std::filesystem;

torch::Device training_device(const TrainConfig& config, const World& world) {
  const torch::Device device = find_device(config.device, "train.device");
  if (device.is_cpu() || device.has_index() || world.is_alone()) return device;
  return find_device(device_of_process(device.str(), world.local_rank, at::accelerator::deviceCount()),
                     "train.device");
}

BatchStreamOptions stream_options(const RunConfig& config) {
  BatchStreamOptions options;
  options.corpus = config.data.train;
  options.max_tokens = config.data.max_tokens;
  options.batch_tokens = config.train.batch_tokens;
  options.prompt = config.model.prompt;
  options.sampling = config.tokenizer.sampling;
  options.seed = static_cast<uint64_t>(config.seed);
  options.shards = config.data.shards;
  return options;
}

ValidationBatches validation_batches(const RunConfig& config, const Tokenizer& tokenizer, DataCache& cache) {
  if (config.data.valid.empty()) return {};
  TokenStoreOptions options;
  options.max_tokens = config.data.max_tokens;
  const TokenStore store = cache.tokens(config.data.valid, tokenizer, options);
  BatchSamplerOptions sampler_options;
  sampler_options.batch_tokens = config.train.batch_tokens;
  sampler_options.shuffle = false;
  BatchSampler sampler(store,
                       store.is_text() ? text_format(tokenizer) : pair_format(tokenizer, config.model.prompt),
                       sampler_options);
  ValidationBatches result{{}, store.skipped_long() + store.skipped_empty()};
  for (int64_t step = 0; step < sampler.steps(0); ++step)  // mutate: unshuffled epochs are alike
    result.batches.push_back(make_batch(store, sampler.format(), sampler.pairs(0, step)));
  return result;
}

namespace {

// Keys beside model.init_from may change how the base model is trained, but not what it consists of.
void check_same_shape(const ModelConfig& model, const ModelConfig& base, const fs::path& folder) {
  const auto now = describe_model(model), before = describe_model(base);
  for (const char* key :
       {"layers", "hidden_size", "heads", "kv_heads", "head_size", "activation", "mlp_size", "norm",
        "positions", "qk_norm", "post_norm", "bias", "qkv_bias", "tied_embeddings", "embedding_shortcut"}) {
    if (now.value(key, nlohmann::json()) != before.value(key, nlohmann::json()))
      throw UserError(fmt::format("model.{}={}, but the base model {} has {}", key, now[key].dump(),
                                  folder.string(), before[key].dump()),
                      fmt::format("leave model.{} out beside model.init_from", key));
  }
}

// Loads the base model's weights, freezes what is not to be trained, and adds adapters where configured.
void start_from(Decoder& decoder, const RunConfig& config, const torch::Device& device) {
  const FinetuneConfig& finetune = config.finetune;
  if (!fs::exists(finetune.init_from / "config.json")) {
    throw UserError(fmt::format("model.init_from: {}: no such checkpoint", finetune.init_from.string()),
                    "`calque import SOURCE CHECKPOINT` creates one");
  }
  const Checkpoint base(finetune.init_from);
  if (fs::exists(finetune.init_from / "model.safetensors.index.json"))
    throw UserError(fmt::format("model.init_from: {}: a sharded checkpoint", finetune.init_from.string()),
                    "`calque import SOURCE CHECKPOINT` makes one file of it");
  if (!fs::exists(finetune.init_from / "model.safetensors"))
    throw UserError(
        fmt::format("model.init_from: {}: adapters without their base model", finetune.init_from.string()),
        "`calque export` merges them into one model");
  if (decoder.config().vocabulary != base.config().vocabulary)
    throw UserError(
        fmt::format("model.init_from: {}: the tokenizer has {} pieces, but the model's vocabulary is {}",
                    finetune.init_from.string(), decoder.config().vocabulary, base.config().vocabulary),
        "it is not the tokenizer that the model was trained with");
  check_same_shape(decoder.config(), base.config(), finetune.init_from);
  base.load_into(decoder);
  decoder.to(device);  // before weights are frozen, which makes copies of them
  if (finetune.freeze_layers > static_cast<int64_t>(decoder.blocks.size())) {
    throw UserError(fmt::format("model.freeze_layers={}, but the model has {} layers", finetune.freeze_layers,
                                decoder.blocks.size()));
  }
  if (finetune.lora.rank > 0) {
    if (finetune.freeze_layers == static_cast<int64_t>(decoder.blocks.size())) {
      throw UserError(fmt::format("model.freeze_layers={} leaves no layer for the adapters of model.lora",
                                  finetune.freeze_layers));
    }
    add_adapters(decoder,
                 {finetune.lora.rank, finetune.lora.scale(), finetune.lora.dropout,
                  finetune.lora.target_modules, finetune.freeze_layers},
                 static_cast<uint64_t>(config.seed), finetune.base_precision);
    return;
  }
  if (finetune.freeze_embeddings) {
    for (auto& parameter : decoder.embedding->parameters()) parameter.set_requires_grad(false);
  }
  for (int64_t i = 0; i < finetune.freeze_layers; ++i) {
    for (auto& parameter : decoder.blocks[static_cast<size_t>(i)]->parameters())
      parameter.set_requires_grad(false);
  }
}

}  // namespace

Precision training_precision(const TrainConfig& config, const torch::Device& device) {
  if (config.precision != Precision::automatic) return config.precision;
  return device.is_cpu() && has_bfloat16_instructions() ? Precision::bfloat16 : Precision::float32;
}

torch::Dtype product_type(Precision precision) {
  return precision == Precision::bfloat16  ? torch::kBFloat16
         : precision == Precision::float16 ? torch::kFloat16
                                           : torch::kFloat32;
}

std::shared_ptr<Decoder> make_model(const RunConfig& config, const Tokenizer& tokenizer,
                                    const torch::Device& device) {
  ModelConfig model = config.model;
  model.vocabulary = tokenizer.size();
  if (config.finetune.base_precision == WeightPrecision::int8 && !device.is_cpu())
    throw UserError("model.base_precision=int8 runs on the CPU only",
                    "model.base_precision=bfloat16 runs everywhere");
  check_longest_sequence(config, pair_format(tokenizer, config.model.prompt).rows(config.data.max_tokens, 0));
  auto decoder = std::make_shared<Decoder>(model);
  decoder->initialise(static_cast<uint64_t>(config.seed));
  if (!config.finetune.init_from.empty()) start_from(*decoder, config, device);
  decoder->to(device);
  decoder->gradient_checkpointing = config.train.gradient_checkpointing;
  decoder->use_products(product_type(training_precision(config.train, device)));
  return decoder;
}

void check_shards(const RunConfig& config, int processes) {
  if (config.data.shards == 1) return;
  if (config.data.shards < processes) {
    throw UserError(
        fmt::format("data.shards={} is less than the number of processes, {}", config.data.shards, processes),
        fmt::format("data.shards={} gives each process one", processes));
  }
  if (config.tokenizer.sampling > 0)
    throw UserError("tokenizer.sampling and data.shards exclude each other",
                    "sampled tokens are made anew in every epoch");
}

Tokenizer shared_tokenizer(ProcessGroup& group, const std::function<Tokenizer()>& choose) {
  std::optional<Tokenizer> own;
  const std::string model = group.from_first([&] {
    own = choose();
    return own->serialized();
  });
  return own ? *own : Tokenizer::from_bytes(model, "the tokenizer of rank 0");
}

Tokenizer choose_tokenizer(const RunConfig& config, DataCache& cache) {
  if (config.finetune.init_from.empty()) return cache.tokenizer(config.tokenizer, config.data.train);
  return Checkpoint(config.finetune.init_from).tokenizer();
}

std::vector<TrainedParameter> trained_parameters(const Decoder& decoder, const FinetuneConfig& config) {
  const double base_scale = config.init_from.empty() ? 1 : config.base_lr_scale;
  std::vector<TrainedParameter> all;
  // `depth`: how many layers there are from here to the last.
  const auto add = [&](const std::string& name, const torch::Tensor& tensor, size_t depth, bool adapter) {
    if (!tensor.requires_grad()) return;
    const double scale = adapter ? 1 : base_scale;
    all.push_back({name, tensor, scale * std::pow(config.layer_lr_decay, static_cast<double>(depth)), {}});
  };
  const auto add_module = [&](const std::string& name, const torch::nn::Module& module, size_t depth) {
    for (const auto& parameter : module.named_parameters())
      add(name + "." + parameter.key(), parameter.value(), depth, false);
  };
  const size_t layers = decoder.blocks.size();
  if (decoder.output.defined()) add("output", decoder.output, 0, false);
  if (decoder.embedding_shortcut.defined()) add("embedding_shortcut", decoder.embedding_shortcut, 0, false);
  add_module("embedding", *decoder.embedding, layers);
  for (size_t i = 0; i < layers; ++i) {
    const Block& block = *decoder.blocks[i];
    const auto matrices = block.matrices();
    const std::string prefix = "block_" + std::to_string(i) + ".";
    for (const auto& parameter : block.named_parameters()) {
      const auto matrix = std::find_if(matrices.begin(), matrices.end(), [&](const Block::Matrix& one) {
        return parameter.key().starts_with(std::string(one.path) + ".");
      });
      const std::string own =
          matrix != matrices.end() ? parameter.key().substr(std::strlen(matrix->path) + 1) : "";
      const size_t before = all.size();
      add(prefix + parameter.key(), parameter.value(), layers - 1 - i, own.starts_with("adapter_"));
      if (own == "weight" && all.size() > before) all.back().part_rows = matrix->part_rows;
    }
  }
  add_module("norm", *decoder.norm, 0);
  return all;
}

}  // namespace calque
