#include "calque/convert/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/convert/hf_names.h"
#include "calque/model/lora.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// What `transformers` wants to know of a tokenizer beside its file.
json tokenizer_settings(const Tokenizer& tokenizer) {
  json settings = {{"bos_token", tokenizer.piece(tokenizer.begin_id())},
                   {"eos_token", tokenizer.piece(tokenizer.end_id())},
                   {"clean_up_tokenization_spaces", false}};
  if (std::string(tokenizer.file_name()) == "tokenizer.json") {
    settings["tokenizer_class"] = "PreTrainedTokenizerFast";
    return settings;
  }
  settings.update({{"tokenizer_class", "LlamaTokenizer"},
                   {"unk_token", tokenizer.piece(tokenizer.unknown_id())},
                   {"add_bos_token", true},
                   {"add_eos_token", false},
                   {"add_prefix_space", true},
                   {"legacy", false}});
  return settings;
}

}  // namespace

void write_checkpoint(const fs::path& folder, const CheckpointContent& content) {
  const fs::path temporary = folder.parent_path() / ("." + folder.filename().string() + ".tmp");
  fs::remove_all(temporary);  // what a killed process may have left
  fs::create_directories(temporary);
  if (content.adapters.empty()) {
    write_safetensors(temporary / "model.safetensors", content.weights, {{"format", "pt"}});
  } else {
    write_safetensors(temporary / "adapters.safetensors", content.adapters, {});
  }
  json config = content.config;
  if (!content.tokenizer.empty()) {
    const Tokenizer tokenizer = Tokenizer::from_bytes(content.tokenizer, "tokenizer");
    config["bos_token_id"] = tokenizer.begin_id();
    config["eos_token_id"] = tokenizer.end_id();
    write_file(temporary / content.tokenizer_file, content.tokenizer);
    write_file(temporary / "tokenizer_config.json", tokenizer_settings(tokenizer).dump(2) + "\n");
  }
  write_file(temporary / "config.json", config.dump(2) + "\n");
  if (!content.progress.is_null())
    write_safetensors(temporary / "state.safetensors", content.state,
                      {{"progress", content.progress.dump()}});
  json manifest = json::object();
  for (const auto& entry : fs::directory_iterator(temporary))
    manifest[entry.path().filename().string()] = hex(hash_file(entry.path()));
  write_file(temporary / "manifest.json", manifest.dump(2) + "\n");
  if (fs::exists(folder)) {  // of the same step, from before a resume: exchanged in one instant
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
      // A file system without that: nothing points at this folder yet, since its step is being made again.
      fs::remove_all(folder);
      fs::rename(temporary, folder);
    }
    fs::remove_all(temporary);
  } else {
    fs::rename(temporary, folder);
  }
  sync_folder(folder.parent_path());
}

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)) {
  if (!fs::is_directory(folder_)) throw UserError(fmt::format("{}: no such checkpoint", folder_.string()));
  const fs::path file = folder_ / "config.json";
  const json config = json::parse(read_file(file), nullptr, false);
  if (config.is_discarded()) throw UserError(fmt::format("{}: not JSON", file.string()));
  try {
    config_ = read_hf_config(config, file.string());
  } catch (const json::exception& error) {
    throw UserError(fmt::format("{}: a value is of the wrong type: {}", file.string(), error.what()));
  }
  if (!fs::exists(folder_ / "manifest.json")) return;
  manifest_ = json::parse(read_file(folder_ / "manifest.json"), nullptr, false);
  if (!manifest_.is_object())
    throw UserError(fmt::format("{}: not a manifest", (folder_ / "manifest.json").string()));
  checked("config.json");
}

fs::path Checkpoint::checked(const std::string& name) const {
  const fs::path file = folder_ / name;
  if (manifest_.is_object() && manifest_.contains(name) && hex(hash_file(file)) != manifest_[name]) {
    throw UserError(fmt::format("{}: damaged: its checksum is not the manifest's", file.string()),
                    "use another checkpoint of the run");
  }
  return file;
}

std::shared_ptr<Decoder> Checkpoint::make_decoder() const {
  const bool adapted = fs::exists(folder_ / "adapters.safetensors");
  if (!adapted) {
    int64_t weights = 0;
    const Safetensors file(folder_ / "model.safetensors");
    for (const auto& [name, entry] : file.entries()) weights += c10::multiply_integers(entry.shape);
    check_weight_count(config_, weights, folder_.string());
  }
  auto decoder = std::make_shared<Decoder>(config_);
  if (!adapted) {
    load_into(*decoder);
    return decoder;
  }
  const json own = json::parse(read_file(checked("config.json")))["calque"];
  const json lora = own.value("lora", json::object());
  fs::path base = own.value("base", "");
  if (!fs::exists(base / "model.safetensors")) {
    throw UserError(fmt::format("{}: its base {} is not there", folder_.string(), base.string()),
                    "adapters alone translate nothing; bring the base back to where it was");
  }
  if (hex(hash_file(base / "model.safetensors")) != own.value("base_hash", "")) {
    throw UserError(fmt::format("{}: not the base that the adapters in {} were trained on", base.string(),
                                folder_.string()),
                    "its checksum is another");
  }
  load_weights(*decoder, Safetensors(base / "model.safetensors"), base.string());
  add_adapters(*decoder,
               {lora.value("rank", int64_t{1}), lora.value("scale", 1.0), 0,
                lora.value("matrices", std::vector<std::string>{}), lora.value("first_layer", int64_t{0})},
               0, Packing::float32);
  load_adapters_into(*decoder);
  return merge_adapters(*decoder);
}

void Checkpoint::load_adapters_into(const Decoder& decoder) const {
  const torch::NoGradGuard no_gradients;
  const fs::path file = checked("adapters.safetensors");
  const Safetensors adapters(file);
  for (const auto& parameter : decoder.named_parameters()) {
    if (parameter.key().find("adapter_") == std::string::npos) continue;
    const torch::Tensor value = adapters.tensor(parameter.key());
    if (value.sizes() != parameter.value().sizes())
      throw UserError(
          fmt::format("{}: {} is of another shape than the model's", file.string(), parameter.key()));
    parameter.value().copy_(value);
  }
}

void Checkpoint::load_into(const Decoder& decoder) const {
  const fs::path file = checked("model.safetensors");
  load_weights(decoder, Safetensors(file), file.string());
}

void Checkpoint::check_files() const {
  if (!manifest_.is_object()) return;
  for (const auto& [name, checksum] : manifest_.items()) checked(fs::path(name).filename().string());
}

bool Checkpoint::has_tokenizer() const {
  return fs::exists(folder_ / "tokenizer.model") || fs::exists(folder_ / "tokenizer.json");
}

Tokenizer Checkpoint::tokenizer() const {
  if (!has_tokenizer()) {
    throw UserError(fmt::format("{}: the checkpoint has no tokenizer", folder_.string()),
                    "`calque import SOURCE CHECKPOINT --tokenizer FILE` adds one");
  }
  return Tokenizer::load(
      checked(fs::exists(folder_ / "tokenizer.model") ? "tokenizer.model" : "tokenizer.json"));
}

Safetensors Checkpoint::state() const { return Safetensors(checked("state.safetensors")); }

json Checkpoint::progress() const {
  const auto metadata = state().metadata();
  const auto found = metadata.find("progress");
  return found == metadata.end() ? json::object() : json::parse(found->second);
}

}  // namespace calque
