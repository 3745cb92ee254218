#include "calque/train/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

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

std::vector<std::pair<int64_t, fs::path>> list_checkpoints(const fs::path& checkpoints) {
  std::vector<std::pair<int64_t, fs::path>> all;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || entry.is_symlink()) continue;
    int64_t step = 0;
    const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (error == std::errc() && end == name.data() + name.size()) all.emplace_back(step, entry.path());
  }
  std::sort(all.rbegin(), all.rend());
  return all;
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
  const json manifest = json::parse(read_file(folder_ / "manifest.json"), nullptr, false);
  if (!manifest.is_object())
    throw UserError(fmt::format("{}: not a manifest", (folder_ / "manifest.json").string()));
  for (const auto& [name, checksum] : manifest.items()) {
    if (hex(hash_file(folder_ / fs::path(name).filename())) != checksum) {
      throw UserError(
          fmt::format("{}: damaged: its checksum is not the manifest's", (folder_ / name).string()),
          "use another checkpoint of the run");
    }
  }
}

std::shared_ptr<Decoder> Checkpoint::make_decoder() const {
  auto decoder = std::make_shared<Decoder>(config_);
  const fs::path file = folder_ / "model.safetensors";
  load_weights(*decoder, Safetensors(file), file.string());
  return decoder;
}

Tokenizer Checkpoint::tokenizer() const { return Tokenizer::load(folder_ / "tokenizer.model"); }

Safetensors Checkpoint::state() const { return Safetensors(folder_ / "state.safetensors"); }

json Checkpoint::progress() const {
  const auto metadata = state().metadata();
  const auto found = metadata.find("progress");
  return found == metadata.end() ? json::object() : json::parse(found->second);
}

CheckpointWriter::CheckpointWriter(fs::path checkpoints, int64_t keep)
    : folder_(std::move(checkpoints)), keep_(keep) {}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::finish() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CheckpointWriter::write(int64_t step, CheckpointContent content, bool best) {
  finish();
  thread_ = std::thread([this, step, best, content = std::move(content)] {
    try {
      store(step, content, best);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

namespace {

// A link is replaced in one instant: made beside, then renamed.
void point(const fs::path& link, const std::string& to) {
  const fs::path temporary = link.parent_path() / ("." + link.filename().string() + ".tmp");
  fs::remove(temporary);
  fs::create_directory_symlink(to, temporary);
  fs::rename(temporary, link);
}

std::string target_of(const fs::path& link) {
  return fs::is_symlink(link) ? fs::read_symlink(link).filename().string() : "";
}

}  // namespace

void CheckpointWriter::mark_best(int64_t step) {
  finish();
  const std::string name = fmt::format("step-{}", step);
  if (fs::exists(folder_ / name) && target_of(folder_ / "best") != name) point(folder_ / "best", name);
}

void CheckpointWriter::store(int64_t step, const CheckpointContent& content, bool best) const {
  const std::string name = fmt::format("step-{}", step);
  write_checkpoint(folder_ / name, content);
  if (best) point(folder_ / "best", name);
  point(folder_ / "last", name);
  sync_folder(folder_);
  const auto all = list_checkpoints(folder_);
  const std::string best_name = target_of(folder_ / "best");
  for (size_t i = static_cast<size_t>(keep_); i < all.size(); ++i) {
    if (all[i].second.filename() != best_name && all[i].second.filename() != name)
      fs::remove_all(all[i].second);
  }
}

}  // namespace calque
