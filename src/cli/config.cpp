// calque config: a configuration resolved, and what one may contain.
#include "calque/base/config.h"

#include "calque/cli/command.h"
#include "calque/runs/run_config.h"

namespace calque::cli {

void add_config_command(CLI::App& app) {
  CLI::App* config = add_command(app, "config", "Show a configuration, or what one may contain",
                                 "calque config show configs/demo.yaml");
  config->require_subcommand(1);

  CLI::App* show =
      add_command(*config, "show", "Print a configuration with all defaults filled in, and comments",
                  "calque config show configs/demo.yaml seed=2");
  static std::filesystem::path file;
  static std::vector<std::string> overrides;
  show->add_option("CONFIG", file, "Configuration file, or a run")->required()->type_name(wants_config);
  show->add_option("OVERRIDES", overrides, "Values that override the file's")->type_name(wants_overrides);
  show->callback([] {
    std::filesystem::path run = runs_folder() / file;
    if (!std::filesystem::exists(run / "config.yaml")) run = file;
    RunConfig resolved = std::filesystem::is_directory(run) ? read_stored_run_config(run, overrides)
                                                            : read_run_config(file, overrides);
    print(show_config(fields(resolved), std::filesystem::current_path()));
  });

  add_command(*config, "schema", "Print a JSON Schema of configurations, for editors",
              "calque config schema > calque.schema.json")
      ->callback([] {
        RunConfig defaults;
        print_json(config_schema(fields(defaults), "calque configuration"));
      });

  add_command(*config, "keys", "Print all keys with type, default and meaning, as a Markdown table",
              "calque config keys")
      ->callback([] {
        RunConfig defaults;
        print(config_table(fields(defaults)));
      });
}

}  // namespace calque::cli
