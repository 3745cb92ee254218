#include "calque/runs/model_source.h"

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/model/decoder.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

bool is_run(const fs::path& folder) { return fs::exists(folder / "config.yaml"); }
bool is_checkpoint(const fs::path& folder) { return fs::exists(folder / "config.json"); }

// Folders like runs/a/ have an empty last part.
std::string last_part(const fs::path& path) {
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

ModelSource from_run(const fs::path& run) {
  for (const char* name : {"best", "last"}) {
    if (is_checkpoint(run / "checkpoints" / name)) {
      return {last_part(run), run / "checkpoints" / name, run, read_stored_run_config(run)};
    }
  }
  throw UserError(fmt::format("{}: the run has no checkpoint yet", run.string()),
                  "the first one is written at the first validation, or at the end");
}

}  // namespace

ModelSource find_model(const fs::path& runs, const std::string& name) {
  if (is_run(runs / name)) return from_run(runs / name);
  const fs::path path = name;
  if (is_run(path)) return from_run(path);
  if (is_checkpoint(path)) {
    ModelSource source{last_part(path), path, {}, {}};
    const fs::path run = fs::absolute(path).lexically_normal().parent_path().parent_path();
    if (is_run(run)) {
      source.run = run;
      source.config = read_stored_run_config(run);
      source.name = last_part(run) + "/" + source.name;
    }
    return source;
  }
  std::vector<std::string> known;
  if (fs::is_directory(runs)) {
    for (const auto& entry : fs::directory_iterator(runs)) {
      if (is_run(entry.path())) known.push_back(entry.path().filename().string());
    }
  }
  if (fs::exists(path) && fs::is_directory(path)) {
    throw UserError(fmt::format("{}: neither a run (config.yaml) nor a checkpoint (config.json)", name));
  }
  throw UserError(fmt::format("{}: no such run or checkpoint{}", name, did_you_mean(name, known)),
                  known.empty() ? "`calque train configs/demo.yaml` trains one"
                                : "runs in " + runs.string() + ": " + shorten(join(known, ", "), 200));
}

int64_t parameter_count(const Translator& translator) { return translator.decoder().parameter_count(); }

namespace {

std::unique_ptr<Translator> make_translator(const ModelSource& source, const Checkpoint& checkpoint,
                                            std::shared_ptr<const Decoder> decoder) {
  return std::make_unique<Translator>(std::move(decoder), checkpoint.tokenizer(),
                                      source.config ? source.config->decode : DecodeConfig{});
}

}  // namespace

std::unique_ptr<Translator> open_translator(const ModelSource& source, WeightPrecision precision,
                                            const torch::Device& device) {
  if (precision == WeightPrecision::int8 && !device.is_cpu())
    throw UserError(fmt::format("weights in int8 run on the CPU alone, not on {}", device.str()),
                    "float32 and bfloat16 run on every device");
  const Checkpoint checkpoint(source.checkpoint);
  auto decoder = checkpoint.make_decoder();
  decoder->eval();
  if (device.is_cpu()) {
    decoder->pack(precision);
  } else {
    decoder->to(device);
    decoder->store_weights(precision == WeightPrecision::bfloat16 ? torch::kBFloat16 : torch::kFloat32);
  }
  return make_translator(source, checkpoint, std::move(decoder));
}

std::unique_ptr<Translator> SharedModels::open(const ModelSource& source, WeightPrecision precision,
                                               const torch::Device& device) {
  const Checkpoint checkpoint(source.checkpoint);
  if (!checkpoint.has_adapters() || !device.is_cpu()) return open_translator(source, precision, device);
  auto& known = bases_[{checkpoint.adapter_base_hash(), precision}];
  std::shared_ptr<const Decoder> base = known.lock();
  if (!base) known = base = checkpoint.make_packed_base(precision);
  // The base lives as long as a decoder that shares it.
  const std::shared_ptr<Decoder> adapted = checkpoint.make_adapted(*base);
  return make_translator(source, checkpoint, {adapted.get(), [adapted, base](const Decoder*) {}});
}

}  // namespace calque
