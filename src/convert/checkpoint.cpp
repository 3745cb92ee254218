#include "calque/convert/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/convert/hf_names.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

void write_checkpoint(const fs::path& folder, const CheckpointContent& content) {
  const fs::path temporary = folder.parent_path() / ("." + folder.filename().string() + ".tmp");
  fs::remove_all(temporary);  // what a killed process may have left
  fs::create_directories(temporary);
  write_safetensors(temporary / "model.safetensors", content.weights, {{"format", "pt"}});
  write_file(temporary / "config.json", content.config.dump(2) + "\n");
  write_file(temporary / "tokenizer.model", content.tokenizer);
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
  auto decoder = std::make_shared<Decoder>(config_);
  load_into(*decoder);
  return decoder;
}

void Checkpoint::load_into(const Decoder& decoder) const {
  const fs::path file = checked("model.safetensors");
  load_weights(decoder, Safetensors(file), file.string());
}

void Checkpoint::check_files() const {
  if (!manifest_.is_object()) return;
  for (const auto& [name, checksum] : manifest_.items()) checked(fs::path(name).filename().string());
}

Tokenizer Checkpoint::tokenizer() const { return Tokenizer::load(checked("tokenizer.model")); }

Safetensors Checkpoint::state() const { return Safetensors(checked("state.safetensors")); }

json Checkpoint::progress() const {
  const auto metadata = state().metadata();
  const auto found = metadata.find("progress");
  return found == metadata.end() ? json::object() : json::parse(found->second);
}

}  // namespace calque
