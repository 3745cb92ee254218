#include "calque/runs/run_folder.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/text.h"
#include "calque/data/line_reader.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// While a run is prepared, a signal ends the process at once (a tokenizer's training cannot be stopped
// otherwise). It removes the folder that was made for the run, if nothing is in it yet.
class RemovedBySignal {
 public:
  static void arm(const fs::path& run) {
    armed = false;
    lock = (run / ".lock").string();
    folders[0] = (run / "checkpoints").string();
    folders[1] = run.string();
    armed = true;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction current {};
      sigaction(signal, nullptr, &current);
      if (current.sa_handler != SIG_DFL) continue;  // ignored by nohup, or handled by somebody else
      current.sa_handler = remove_and_die;
      sigaction(signal, &current, nullptr);
    }
  }
  static void disarm() { armed = false; }

 private:
  static void remove_and_die(int signal) {
    if (armed) {
      unlink(lock.c_str());
      for (const std::string& folder : folders) rmdir(folder.c_str());
    }
    ::signal(signal, SIG_DFL);
    raise(signal);
  }

  static inline std::atomic<bool> armed = false;
  static inline std::string lock, folders[2];
};

}  // namespace

RunFolder::RunFolder(fs::path path, Mode mode) : path_(std::move(path)) {
  if (const auto process = training_process(path_))
    throw UserError(fmt::format("{}: {} is training this run", path_.string(), *process));
  const bool begun = fs::exists(path_ / "config.yaml");
  if (mode == Mode::create && begun) {
    throw UserError(
        fmt::format("{}: this run exists already", path_.string()),
        fmt::format("`calque resume {}` continues it, run=NAME starts another, --fresh deletes it and "
                    "starts again",
                    shell_quoted(path_.filename().string())));
  }
  if (mode == Mode::create && has_checkpoints()) {
    throw UserError(fmt::format("{}: checkpoints without a configuration, of no known run", path_.string()),
                    "move them away, or --fresh deletes them and starts again");
  }
  if (mode == Mode::resume && !begun)
    throw UserError(fmt::format("{}: there is no such run to resume", path_.string()));
  open_folder();
}

void RunFolder::open_folder() {
  std::error_code error;
  created_ = fs::create_directories(path_ / "checkpoints", error) && !fs::exists(path_ / "config.yaml");
  if (error) throw UserError(fmt::format("{}: cannot be created: {}", path_.string(), error.message()));
  try {
    lock_.emplace(path_);
  } catch (const UserError&) {  // another process has it: its folder stays
    created_ = false;
    throw;
  }
  if (created_) RemovedBySignal::arm(path_);
}

void RunFolder::clear() {
  const std::string prefix = ".deleted-" + path_.filename().string() + "-";
  const fs::path away = path_.parent_path() / (prefix + std::to_string(getpid()));
  fs::rename(path_, away);
  lock_.reset();
  open_folder();
  for (const auto& entry : fs::directory_iterator(path_.parent_path())) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path());
  }
}

void RunFolder::keep() {
  created_ = false;
  RemovedBySignal::disarm();
  sync_folder(path_.parent_path());
}

std::string RunFolder::id() const {
  const fs::path file = path_ / "run_id";
  if (!fs::exists(file)) {
    write_file(file, random_name());
  }
  return read_file(file);
}

bool RunFolder::has_checkpoints() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(checkpoints(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.find_first_not_of("0123456789", 5) == std::string::npos)
      return true;
  }
  return false;
}

RunFolder::~RunFolder() {
  lock_.reset();
  if (!created_) return;
  RemovedBySignal::disarm();
  std::error_code ignored;  // a start that failed leaves nothing behind
  fs::remove_all(path_, ignored);
}

void append_metrics(const fs::path& path, const json& line) {
  std::ofstream file(path, std::ios::app);
  file << line.dump() << "\n";
  if (!file.flush()) throw SystemError(path.string() + ": writing failed", errno);
}

void flush_metrics(const fs::path& path) {
  if (!fs::exists(path)) return;
  sync_file(path);
  sync_folder(path.parent_path());
}

std::vector<json> read_metrics(const fs::path& path) {
  std::vector<json> lines;
  if (!fs::exists(path)) return lines;
  LineReader reader(path);
  for (std::string_view line; reader.next(line);) {
    json value = json::parse(line, nullptr, false);
    if (value.is_object()) lines.push_back(std::move(value));  // a crash may have cut the last line
  }
  return lines;
}

void trim_metrics(const fs::path& path, int64_t step, int64_t validated_step) {
  if (!fs::exists(path)) return;
  std::string kept;
  for (const json& line : read_metrics(path)) {
    const auto at = line.value("step", int64_t{0});
    if (at <= step && (!line.contains("valid_loss") || at <= validated_step)) kept += line.dump() + "\n";
  }
  write_file(path, kept);
}

}  // namespace calque
