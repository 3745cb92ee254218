#include "calque/train/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "calque/base/file.h"

namespace calque {
namespace fs = std::filesystem;

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
