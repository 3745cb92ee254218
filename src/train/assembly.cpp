#include "calque/train/assembly.h"

#include <ATen/ATen.h>

#include <cmath>

#include "calque/base/error.h"
#include "calque/convert/checkpoint.h"
#include "calque/data/prepared_data.h"
#include "calque/model/lora.h"

namespace calque {
namespace fs = std::filesystem;

torch::Device choose_device(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return torch::kCPU;
  const bool gpu = at::hasCUDA();
  if (kind == DeviceKind::cuda && !gpu)
    throw UserError("train.device=cuda: this LibTorch sees no CUDA device",
                    "train.device=cpu runs everywhere");
  return gpu ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
}

BatchStreamOptions stream_options(const RunConfig& config, const fs::path& cache) {
  return {config.data.train,
          config.data.max_tokens,
          config.train.batch_tokens,
          config.model.prompt,
          config.tokenizer.sampling,
          static_cast<uint64_t>(config.seed),
          cache,
          {}};
}

std::vector<Batch> validation_batches(const RunConfig& config, const Tokenizer& tokenizer,
                                      const fs::path& cache) {
  if (config.data.valid.empty()) return {};
  TokenStoreOptions options;
  options.max_tokens = config.data.max_tokens;
  const TokenStore store = prepare_tokens(config.data.valid, tokenizer, options, cache);
  BatchSamplerOptions sampler_options;
  sampler_options.batch_tokens = config.train.batch_tokens;
  sampler_options.shuffle = false;
  BatchSampler sampler(store,
                       store.is_text() ? text_format(tokenizer) : pair_format(tokenizer, config.model.prompt),
                       sampler_options);
  std::vector<Batch> batches;
  for (int64_t step = 0; step < sampler.steps(0); ++step)
    batches.push_back(make_batch(store, sampler.format(), sampler.pairs(0, step)));
  return batches;
}

namespace {

// The base's weights; what is to stay as it is, frozen; adapters where asked for.
void start_from(Decoder& decoder, const RunConfig& config) {
  const TuningConfig& tuning = config.tuning;
  if (!fs::exists(tuning.init_from / "config.json")) {
    throw UserError(fmt::format("model.init_from: {}: no checkpoint there", tuning.init_from.string()),
                    "`calque import SOURCE CHECKPOINT` makes one");
  }
  const Checkpoint base(tuning.init_from);
  if (!fs::exists(tuning.init_from / "model.safetensors"))
    throw UserError(fmt::format("model.init_from: {}: adapters alone are no base", tuning.init_from.string()),
                    "`calque export` merges them");
  base.load_into(decoder);
  if (tuning.freeze_layers > static_cast<int64_t>(decoder.blocks.size())) {
    throw UserError(fmt::format("model.freeze_layers={}, but the model has {} layers", tuning.freeze_layers,
                                decoder.blocks.size()));
  }
  if (tuning.lora.rank > 0) {
    if (tuning.freeze_layers == static_cast<int64_t>(decoder.blocks.size())) {
      throw UserError(fmt::format("model.freeze_layers={} leaves no layer for the adapters of model.lora",
                                  tuning.freeze_layers));
    }
    add_adapters(decoder,
                 {tuning.lora.rank, tuning.lora.scale(), tuning.lora.dropout, tuning.lora.matrices,
                  tuning.freeze_layers},
                 static_cast<uint64_t>(config.seed), tuning.base_precision);
    return;
  }
  if (tuning.freeze_embedding) {
    for (auto& parameter : decoder.embedding->parameters()) parameter.set_requires_grad(false);
  }
  for (int64_t i = 0; i < tuning.freeze_layers; ++i) {
    for (auto& parameter : decoder.blocks[static_cast<size_t>(i)]->parameters())
      parameter.set_requires_grad(false);
  }
}

}  // namespace

std::shared_ptr<Decoder> make_model(const RunConfig& config, const Tokenizer& tokenizer,
                                    const torch::Device& device) {
  ModelConfig model = config.model;
  model.vocabulary = tokenizer.size();
  const int64_t longest = pair_format(tokenizer, config.model.prompt).rows(config.data.max_tokens, 0);
  if (longest > model.max_positions) {
    throw UserError(
        fmt::format("data.max_tokens={} makes sequences of up to {} tokens, but model.max_positions={}",
                    config.data.max_tokens, longest, model.max_positions),
        "raise model.max_positions or lower data.max_tokens");
  }
  if (longest > config.train.batch_tokens) {
    throw UserError(fmt::format("train.batch_tokens={} is too small for data.max_tokens={}, which makes "
                                "sequences of up to {} tokens",
                                config.train.batch_tokens, config.data.max_tokens, longest),
                    "raise train.batch_tokens or lower data.max_tokens");
  }
  auto decoder = std::make_shared<Decoder>(model);
  decoder->initialise(static_cast<uint64_t>(config.seed));
  if (!config.tuning.init_from.empty()) start_from(*decoder, config);
  decoder->to(device);
  decoder->recompute = config.train.recompute;
  if (config.train.precision == Precision::bfloat16) decoder->use_half_products();
  return decoder;
}

Tokenizer choose_tokenizer(const RunConfig& config, const fs::path& cache) {
  if (config.tuning.init_from.empty()) return prepare_tokenizer(config.tokenizer, config.data.train, cache);
  if (!config.tokenizer.path.empty()) {
    throw UserError("tokenizer.path and model.init_from exclude each other",
                    "a base is used with the tokenizer that it was trained with");
  }
  return Checkpoint(config.tuning.init_from).tokenizer();
}

Optimizer::RateShare rate_shares(const RunConfig& config) {
  const TuningConfig tuning = config.tuning;
  const int64_t layers = config.model.layers;
  if (tuning.imported_rate == 1 && tuning.layer_decay == 1) return {};
  return [tuning, layers](const std::string& name) {
    const bool adapter = name.find("adapter_") != std::string::npos;
    const double share = tuning.init_from.empty() || adapter ? 1 : tuning.imported_rate;
    int64_t below = name.starts_with("embedding") ? layers : 0;  // layers from here up to the last
    if (name.starts_with("block_")) below = layers - 1 - std::stoll(name.substr(6));
    return share * std::pow(tuning.layer_decay, static_cast<double>(below));
  };
}

}  // namespace calque
