// calque runs, calque cache: what is on the disk; removing and archiving it.
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/runs/run_list.h"

namespace calque::cli {
namespace {

struct RunsOptions {
  std::vector<std::string> names;
  std::string name;
  std::filesystem::path file;
  std::string older_than = "0";
  bool as_json = false;
};

void print_runs(const RunsOptions& options) {
  const auto runs = list_runs(runs_folder());
  if (options.as_json) {
    nlohmann::json all = nlohmann::json::array();
    for (const RunSummary& run : runs) all.push_back(run.to_json());
    return print_json(all);
  }
  if (runs.empty()) {
    log::info("no runs in {}; `calque train configs/demo.yaml` trains one", runs_folder().string());
  } else {
    print(runs_table(runs));
  }
}

void print_cache() {
  int64_t bytes = 0;
  for (const CachedFile& one : list_cache(runs_folder() / ".cache")) {
    print(fmt::format("{:<28} {:>9}  used {} ago\n", one.path.filename().string(), format_bytes(one.bytes),
                      format_seconds(one.age_seconds)));
    bytes += one.bytes;
  }
  print(fmt::format("{} in all; it may be deleted at any time\n", format_bytes(bytes)));
}

void prune(const RunsOptions& options) {
  const auto seconds = parse_seconds(options.older_than, 86400);
  if (!seconds || *seconds < 0)
    throw UserError(fmt::format("--older-than {}: not a duration", options.older_than),
                    "for example 30d or 12h");
  int64_t bytes = 0;
  const auto removed = prune_cache(runs_folder() / ".cache", *seconds);
  for (const CachedFile& one : removed) bytes += one.bytes;
  log::info("removed {}, {}", format_count(static_cast<int64_t>(removed.size()), "file"),
            format_bytes(bytes));
}

}  // namespace

void add_runs_command(CLI::App& app) {
  static RunsOptions options;
  CLI::App* runs = add_command(
      app, "runs", "List runs with state, steps, BLEU and size; remove or archive them", "calque runs");
  runs->add_flag("--json", options.as_json, "Print the list as JSON");
  add_command(*runs, "list", "List runs, as `calque runs` alone does", "calque runs list")->callback([] {
    print_runs(options);
  });
  CLI::App* remove = add_command(*runs, "remove", "Delete runs", "calque runs remove demo");
  remove->add_option("RUNS", options.names, "Names of the runs")->required()->type_name(wants_run);
  remove->callback([] {
    for (const std::string& name : options.names) {
      remove_run(runs_folder(), name);
      log::info("{}: removed", (runs_folder() / name).string());
    }
  });
  CLI::App* archive = add_command(*runs, "archive", "Write a run into one compressed file; the run stays",
                                  "calque runs archive demo");
  archive->add_option("RUN", options.name, "Name of the run")->required()->type_name(wants_run);
  archive->add_option("-o,--output", options.file, "File to write; default: RUN.tar.gz")->type_name("FILE");
  archive->callback([] {
    const auto file = options.file.empty() ? std::filesystem::path(options.name + ".tar.gz") : options.file;
    const int64_t bytes = archive_run(runs_folder(), options.name, file);
    log::info("{}: {}; `calque runs restore {}` brings the run back", file.string(), format_bytes(bytes),
              file.string());
  });
  CLI::App* restore =
      add_command(*runs, "restore", "Unpack an archived run into runs/", "calque runs restore demo.tar.gz");
  restore->add_option("FILE", options.file, "What `calque runs archive` wrote")
      ->required()
      ->type_name("FILE");
  restore->callback([] {
    const std::string name = restore_run(runs_folder(), options.file);
    log::info("{}: restored", (runs_folder() / name).string());
  });
  runs->callback([runs] {
    if (runs->get_subcommands().empty()) print_runs(options);
  });
}

void add_cache_command(CLI::App& app) {
  static RunsOptions options;
  CLI::App* cache = add_command(app, "cache", "List or prune the cache of tokenizers and tokenised corpora",
                                "calque cache prune --older-than 30d");
  CLI::App* prune_command = add_command(*cache, "prune", "Delete what was not used recently",
                                        "calque cache prune --older-than 30d");
  prune_command
      ->add_option("--older-than", options.older_than, "Age in days, or with a unit: 12h, 30d; default: all")
      ->type_name("AGE");
  prune_command->callback([] { prune(options); });
  cache->callback([cache] {
    if (cache->get_subcommands().empty()) print_cache();
  });
}

}  // namespace calque::cli
