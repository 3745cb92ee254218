#include "calque/train/checkpoint_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

// A checkpoint whose replacement was interrupted has its old content under another name. What an interrupted
// deletion left is deleted.
void restore_interrupted(const fs::path& checkpoints) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".deleted-")) fs::remove_all(entry.path());
    if (name.starts_with('.') && name.ends_with(".old"))
      found.push_back(checkpoints / name.substr(1, name.size() - 5));
  }
  for (const fs::path& folder : found) restore_folder(folder);
}

}  // namespace

std::vector<std::pair<int64_t, fs::path>> list_checkpoints(const fs::path& checkpoints) {
  std::vector<std::pair<int64_t, fs::path>> all;
  restore_interrupted(checkpoints);
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

namespace {

// What may not be read is not damaged: an older checkpoint in its place would lose work without need.
void check_access(const fs::path& checkpoint) {
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (access(entry.path().c_str(), R_OK) != 0) throw SystemError(entry.path().string(), errno);
  }
}

}  // namespace

std::optional<Checkpoint> newest_checkpoint(const fs::path& checkpoints, const std::string& run_id) {
  const auto all = list_checkpoints(checkpoints);
  std::string refused;
  for (const auto& [step, path] : all) {
    try {
      check_access(path);
      Checkpoint checkpoint(path);
      checkpoint.check_files();
      const std::string id = checkpoint.progress().value("run_id", "");
      if (!id.empty() && id != run_id) throw UserError(fmt::format("{}: of another run", path.string()));
      if (!refused.empty())
        log::warn("resuming from {}; newer ones cannot be used:{}", path.string(), refused);
      return checkpoint;
    } catch (
        const UserError& error) {  // damaged, or of another run; a failing disk is not a reason to go back
      refused += fmt::format("\n  {}", error.what());
    }
  }
  if (!refused.empty()) {
    throw UserError(fmt::format("{}: no checkpoint can be used:{}", checkpoints.string(), refused),
                    "--fresh deletes the run and starts again");
  }
  return std::nullopt;
}

CheckpointWriter::CheckpointWriter(const RunFolder& run, int64_t keep)
    : folder_(run.checkpoints()), metrics_(run.metrics()), keep_(keep) {}

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

void CheckpointWriter::mark(const std::string& name, int64_t step) {
  finish();
  const fs::path checkpoint = folder_ / fmt::format("step-{}", step);
  if (fs::exists(checkpoint) && !same_model(checkpoint, folder_ / name))
    link_checkpoint(checkpoint, folder_ / name);
}

void CheckpointWriter::store(int64_t step, const CheckpointContent& content, bool best) const {
  const fs::path checkpoint = folder_ / fmt::format("step-{}", step);
  flush_metrics(metrics_);
  write_checkpoint(checkpoint, content);
  if (best) link_checkpoint(checkpoint, folder_ / "best");
  link_checkpoint(checkpoint, folder_ / "last");
  const auto all = list_checkpoints(folder_);
  for (size_t i = static_cast<size_t>(keep_); i < all.size(); ++i) {
    if (all[i].second != checkpoint) remove_folder(all[i].second);
  }
}

}  // namespace calque
