#include "calque/runs/run_list.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/runs/run_folder.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A run, a search whose folder holds runs, or a distillation.
bool is_listed(const fs::path& folder) {
  return fs::exists(folder / "config.yaml") || fs::exists(folder / "search.json") ||
         fs::exists(folder / "train.json");
}

double age_of(fs::file_time_type time) {
  return std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - time).count());
}

json read_object(const fs::path& file) {
  const json value = fs::exists(file) ? json::parse(read_file(file), nullptr, false) : json();
  return value.is_object() ? value : json::object();
}

}  // namespace

std::optional<ShownEvaluation> shown_evaluation(const fs::path& run) {
  std::optional<ShownEvaluation> shown;
  fs::file_time_type newest{};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run / "evaluations", ignored)) {
    const fs::path file = entry.path() / "scores.json";
    const json scores = read_object(file);
    if (!scores.contains("bleu") || !scores["bleu"].is_object()) continue;
    const fs::file_time_type time = fs::last_write_time(file);
    const bool own = entry.path().filename() == "test", before_own = shown && shown->test_set == "test";
    if (shown && (before_own || (!own && time < newest))) continue;
    shown = {entry.path().filename().string(), scores["bleu"].value("score", 0.0),
             scores.value("sentences", int64_t{0})};
    newest = time;
  }
  return shown;
}

namespace {

void set_bleu(RunSummary& found, const fs::path& run, const json& summary) {
  if (const auto evaluation = shown_evaluation(run)) {
    found.bleu = evaluation->bleu;
    found.bleu_on = evaluation->test_set;
  } else if (const double best = summary.value("best_valid_bleu", -1.0); best >= 0) {  // -1: never validated
    found.bleu = best;
    found.bleu_on = "validation";
  }
}

RunSummary summarise(const fs::path& run) {
  RunSummary found;
  found.name = run.filename().string();
  const json summary = read_object(run / "summary.json");
  const auto metrics = read_metrics(run / "metrics.jsonl");
  if (!metrics.empty()) found.step = metrics.back().value("step", int64_t{0});
  found.step = std::max(found.step, summary.value("step", int64_t{0}));
  const std::string end = summary.value("end", "");
  found.state = training_process(run)             ? "training"
                : end == "interrupted"            ? "interrupted"
                : end == "paused"                 ? "paused"
                : !end.empty()                    ? "done"
                : !summary.empty()                ? "done"
                : !metrics.empty()                ? "stopped"
                : fs::exists(run / "search.json") ? "search"
                : fs::exists(run / "train.json")  ? "distilled"
                                                  : "empty";
  set_bleu(found, run, summary);
  fs::file_time_type last = fs::last_write_time(run);
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    // A hard link is counted by its share.
    found.bytes += static_cast<int64_t>(entry.file_size() / std::max<uintmax_t>(1, entry.hard_link_count()));
    last = std::max(last, entry.last_write_time());
  }
  found.age_seconds = age_of(last);
  return found;
}

}  // namespace

json RunSummary::to_json() const {
  return {{"name", name},
          {"state", state},
          {"step", step},
          {"bleu", bleu ? json(*bleu) : json()},
          {"bleu_on", bleu_on ? json(*bleu_on) : json()},
          {"bytes", bytes},
          {"age_seconds", age_seconds}};
}

std::vector<RunSummary> list_runs(const fs::path& runs) {
  std::vector<RunSummary> all;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    const bool hidden = entry.path().filename().string().starts_with('.');  // being made or deleted
    if (!hidden && is_listed(entry.path())) all.push_back(summarise(entry.path()));
  }
  std::sort(all.begin(), all.end(),
            [](const RunSummary& a, const RunSummary& b) { return a.age_seconds < b.age_seconds; });
  return all;
}

std::string runs_table(const std::vector<RunSummary>& runs) {
  size_t width = 4, set_width = 2;
  for (const RunSummary& run : runs) {
    width = std::max(width, display_width(run.name));
    set_width = std::max(set_width, display_width(run.bleu_on.value_or("")));
  }
  std::string text = fmt::format("{:<{}}  {:<11}  {:>9}  {:>5}  {:<{}}  {:>8}  {}\n", "run", width, "state",
                                 "steps", "BLEU", "on", set_width, "size", "last change");
  for (const RunSummary& run : runs) {
    text += fmt::format("{:<{}}  {:<11}  {:>9}  {:>5}  {:<{}}  {:>8}  {} ago\n", run.name, width, run.state,
                        format_count(run.step), run.bleu ? fmt::format("{:.1f}", *run.bleu) : "–",
                        run.bleu_on.value_or(""), set_width, format_bytes(run.bytes),
                        format_seconds(run.age_seconds));
  }
  return text;
}

namespace {

// The folder of a run that nobody is training.
fs::path idle_run(const fs::path& runs, const std::string& name) {
  const fs::path run = runs / name;
  if (!is_listed(run)) {
    std::vector<std::string> known;
    for (const RunSummary& one : list_runs(runs)) known.push_back(one.name);
    throw UserError(fmt::format("{}: no such run{}", run.string(), did_you_mean(name, known)),
                    "`calque runs` lists them");
  }
  if (const auto process = training_process(run))
    throw UserError(fmt::format("{}: {} is training this run", run.string(), *process));
  return run;
}

// Runs GNU tar, which knows hard links; its messages go to stderr.
void run_tar(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"tar", "--force-local"});  // "host:file" is a file's name here
  std::vector<char*> argv;
  for (std::string& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, "tar", nullptr, nullptr, argv.data(), environ); error != 0)
    throw SystemError("tar", error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw UserError("tar failed; its message is above", "is it a file of `calque runs archive`?");
}

// A folder or file that is removed when the scope ends, if it is still there.
struct Temporary {
  fs::path path;
  ~Temporary() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// A run has only files and folders. A link would let a stranger's archive redirect what is written later.
void check_restored(const fs::path& run, const fs::path& archive) {
  const auto check = [&](const fs::directory_entry& entry) {
    if (entry.is_symlink() || !(entry.is_regular_file() || entry.is_directory()))
      throw UserError(fmt::format("{}: \"{}\" is neither a file nor a folder", archive.string(),
                                  shorten(entry.path().lexically_relative(run.parent_path()).string(), 60)),
                      "`calque runs archive RUN` makes archives of files and folders only");
  };
  check(fs::directory_entry(run));
  if (!fs::is_directory(run)) return;
  for (const auto& entry : fs::recursive_directory_iterator(run)) check(entry);
}

}  // namespace

int64_t archive_run(const fs::path& runs, const std::string& name, const fs::path& file) {
  idle_run(runs, name);
  if (fs::exists(file))
    throw UserError(fmt::format("{}: already exists", file.string()), "choose another file with --output");
  if (const fs::path folder = fs::absolute(file).parent_path(); !fs::is_directory(folder))
    throw UserError(fmt::format("{}: no such folder", folder.string()));
  const Temporary part{file.string() + fmt::format(".tmp-{}", getpid())};
  run_tar({"--create", "--gzip", "--file", part.path.string(), "--directory", runs.string(), "--exclude",
           name + "/.lock", "--", name});
  sync_file(part.path);
  fs::rename(part.path, file);
  sync_folder(fs::absolute(file).parent_path());
  return static_cast<int64_t>(fs::file_size(file));
}

std::string restore_run(const fs::path& runs, const fs::path& file) {
  check_readable(file);
  const Temporary part{runs / fmt::format(".restored-{}", getpid())};
  fs::create_directories(part.path);
  run_tar(
      {"--extract", "--gzip", "--no-same-owner", "--file", file.string(), "--directory", part.path.string()});
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(part.path)) found.push_back(entry.path());
  if (found.size() == 1) check_restored(found.front(), file);
  if (found.size() != 1 || !is_listed(found.front()))
    throw UserError(fmt::format("{}: not an archive of a run", file.string()),
                    "`calque runs archive RUN` makes one");
  const std::string name = found.front().filename().string();
  if (fs::exists(runs / name))
    throw UserError(fmt::format("{}: already exists", (runs / name).string()),
                    "rename or remove that run first");
  fs::rename(found.front(), runs / name);
  return name;
}

void remove_run(const fs::path& runs, const std::string& name) { remove_folder(idle_run(runs, name)); }

std::vector<CachedFile> list_cache(const fs::path& cache) {
  std::vector<CachedFile> all;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    if (entry.is_regular_file())
      all.push_back({entry.path(), static_cast<int64_t>(entry.file_size()), age_of(entry.last_write_time())});
  }
  std::sort(all.begin(), all.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.age_seconds > b.age_seconds; });
  return all;
}

std::vector<CachedFile> prune_cache(const fs::path& cache, double older_than_seconds) {
  std::vector<CachedFile> removed;
  for (const CachedFile& one : list_cache(cache)) {
    if (one.age_seconds < older_than_seconds) continue;
    fs::remove(one.path);
    removed.push_back(one);
  }
  return removed;
}

}  // namespace calque
