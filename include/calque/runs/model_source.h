// ModelSource: what RUN|CHECKPOINT on a command line means: a run by its name or folder, or a
// checkpoint.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "calque/decode/translator.h"
#include "calque/kernels/weight_precision.h"
#include "calque/runs/run_config.h"

namespace calque {

struct ModelSource {
  std::string name;  // for people: the run's, or the checkpoint's folder
  std::filesystem::path checkpoint;
  std::optional<std::filesystem::path> run;  // the run's folder, where it is one
  std::optional<RunConfig> config;           // the run's configuration
};

// The best checkpoint of a run, or the last where there is none; a checkpoint inside a run's folder belongs
// to that run. Whatever does not exist is a UserError with the nearest name. The run's corpus is not needed.
ModelSource find_model(const std::filesystem::path& runs, const std::string& name);

// Ready to translate with the run's `decode` section; a checkpoint alone has the defaults. int8 needs the
// CPU.
std::unique_ptr<Translator> open_translator(const ModelSource& source,
                                            WeightPrecision precision = WeightPrecision::float32,
                                            const torch::Device& device = torch::kCPU);
int64_t parameter_count(const Translator& translator);

// Opens translators for a program that keeps several. Adapters of one base model share its weights on the
// CPU. They are not merged into them, so that scores differ in rounding from open_translator's.
class SharedModels {
 public:
  std::unique_ptr<Translator> open(const ModelSource& source, WeightPrecision precision,
                                   const torch::Device& device = torch::kCPU);

 private:
  // By the base model's checksum; a base is freed with its last translator.
  std::map<std::pair<std::string, WeightPrecision>, std::weak_ptr<const Decoder>> bases_;
};

}  // namespace calque
