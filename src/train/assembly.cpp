#include "calque/train/assembly.h"

#include <ATen/ATen.h>

#include "calque/base/error.h"
#include "calque/data/prepared_data.h"

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
  BatchSampler sampler(store, store.is_text() ? text_format(tokenizer) : pair_format(tokenizer),
                       sampler_options);
  std::vector<Batch> batches;
  for (int64_t step = 0; step < sampler.steps(0); ++step)
    batches.push_back(make_batch(store, sampler.format(), sampler.pairs(0, step)));
  return batches;
}

std::shared_ptr<Decoder> make_model(const RunConfig& config, const Tokenizer& tokenizer,
                                    const torch::Device& device) {
  ModelConfig model = config.model;
  model.vocabulary = tokenizer.size();
  const int64_t longest = pair_format(tokenizer).rows(config.data.max_tokens, 0);
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
  decoder->to(device);
  return decoder;
}

}  // namespace calque
