// The parts of a training run, built from its configuration: device, tokenizer, model, batches.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "calque/data/batch_stream.h"
#include "calque/data/data_cache.h"
#include "calque/data/tokenizer.h"
#include "calque/distributed/process_group.h"
#include "calque/model/decoder.h"
#include "calque/runs/run_config.h"
#include "calque/train/optimizer.h"

namespace calque {

// Where several processes of a machine train, each has a device of its own, if there are several.
torch::Device training_device(const TrainConfig& config, const World& world = {});

// The precision of the matrix products: `auto` is bfloat16 on processors with instructions for it.
Precision training_precision(const TrainConfig& config, const torch::Device& device);
// The type to which the operands of the products are rounded.
torch::Dtype product_type(Precision precision);

BatchStreamOptions stream_options(const RunConfig& config);
struct ValidationBatches {
  std::vector<Batch> batches;
  int64_t skipped = 0;  // pairs that are left out: too long, or with an empty side
};
ValidationBatches validation_batches(const RunConfig& config, const Tokenizer& tokenizer, DataCache& cache);

// With several processes each needs a shard of its own.
void check_shards(const RunConfig& config, int processes);

// The base model's tokenizer where the run starts from one, else the configured one.
Tokenizer choose_tokenizer(const RunConfig& config, DataCache& cache);

// Rank 0's, which it loads or trains; the other ranks get its bytes.
Tokenizer shared_tokenizer(ProcessGroup& group, const std::function<Tokenizer()>& choose);

// The model with its weights initialised, or taken from the base model and frozen or adapted as configured.
// Lengths that fit neither the model nor a batch are refused by their keys.
std::shared_ptr<Decoder> make_model(const RunConfig& config, const Tokenizer& tokenizer,
                                    const torch::Device& device);

// The parameters to train, each with its own fraction of the learning rate.
std::vector<TrainedParameter> trained_parameters(const Decoder& decoder, const FinetuneConfig& config);

}  // namespace calque
