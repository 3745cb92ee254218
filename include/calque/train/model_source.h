// ModelSource: what a person means by RUN|CHECKPOINT: a run by its name or folder, or a checkpoint's folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "calque/decode/translator.h"
#include "calque/train/run_config.h"

namespace calque {

struct ModelSource {
  std::string name;  // as people call it
  std::filesystem::path checkpoint;
  std::optional<std::filesystem::path> run;  // the run's folder, where it is one
  std::optional<RunConfig> config;           // the run's configuration
};

// The best checkpoint of a run, or the last where there is no best; runs/NAME/checkpoints/step-N and the like
// belong to their run too. What is not there is a UserError with the nearest name.
ModelSource find_model(const std::filesystem::path& runs, const std::string& name);

// Ready to translate, as the run's `decode` section says; a checkpoint alone has the defaults.
std::unique_ptr<Translator> open_translator(const ModelSource& source, Packing packing = Packing::float32);
int64_t parameter_count(const Translator& translator);

}  // namespace calque
