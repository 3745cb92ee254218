// calque import, export, inspect: models that come from elsewhere or go there.
#include "calque/convert/import.h"

#include <sstream>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/train/model_source.h"

namespace calque::cli {
namespace {

using nlohmann::json;

struct ImportCommandOptions {
  ImportOptions import;
  std::vector<std::filesystem::path> prune_to;
  bool as_json = false;
};

void run_import(ImportCommandOptions& options) {
  for (const auto& file : options.prune_to) {
    CorpusPart part;
    LineReader reader(file);
    std::string_view first;
    (reader.next(first) && first.find('\t') != std::string_view::npos ? part.pairs : part.text) = file;
    options.import.prune_to.push_back(part);
  }
  const json told = import_model(options.import);
  if (options.as_json) return print_json(told);
  log::info("{}: {}, {}, {} parameters, {} pieces ({})", options.import.destination.string(),
            told["format"].get<std::string>(), told["architecture"].get<std::string>(),
            format_count(told["parameters"].get<int64_t>()), format_count(told["pieces"].get<int64_t>()),
            told["tokenizer"].get<std::string>());
  if (told.contains("pieces_before")) {
    log::info("of {} pieces the corpus needs {}; {} parameters less",
              format_count(told["pieces_before"].get<int64_t>()), format_count(told["pieces"].get<int64_t>()),
              format_count(told["parameters_before"].get<int64_t>() - told["parameters"].get<int64_t>()));
  }
}

struct ExportCommandOptions {
  std::string model;
  ExportOptions exporting;
};

void run_export(ExportCommandOptions& options) {
  options.exporting.checkpoint = find_model(runs_folder(), options.model).checkpoint;
  const json told = export_model(options.exporting);
  log::info("{}: {} parameters; read back, logits differ by {:.1e} at most",
            options.exporting.destination.string(), format_count(told["parameters"].get<int64_t>()),
            told["largest_logit_difference"].get<double>());
}

struct InspectOptions {
  std::filesystem::path path;
  std::string logits;
  bool as_json = false;
};

std::vector<int64_t> ids_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<int64_t> ids;
  for (std::string word; words >> word;) {
    const auto id = parse_count(word);
    if (!id) throw UserError(fmt::format("--logits: \"{}\" is no id", shorten(word, 20)));
    ids.push_back(*id);
  }
  return ids;
}

void print_inspection(const json& told) {
  const auto line = [](const std::string& name, const std::string& value) {
    print(fmt::format("{:<24}{}\n", name, value));
  };
  line("format", told["format"].get<std::string>());
  if (told.contains("architecture")) line("architecture", told["architecture"].get<std::string>());
  if (told.contains("tokenizer")) line("tokenizer", told["tokenizer"].get<std::string>());
  if (told.contains("parameters")) line("parameters", format_count(told["parameters"].get<int64_t>()));
  if (told.contains("model")) {
    for (const auto& [key, value] : told["model"].items())
      line("  " + key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  line("can be imported", told["importable"].get<bool>() ? "yes" : "no");
  for (const json& problem : told["problems"]) line("  because", problem.get<std::string>());
  print(fmt::format("{} tensors\n", told["tensors"].size()));
  for (const json& tensor : told["tensors"]) {
    std::string shape;
    for (const json& size : tensor["shape"]) shape += (shape.empty() ? "" : ", ") + size.dump();
    print(fmt::format("  {:<52} [{}]  {}\n", tensor["name"].get<std::string>(), shape,
                      tensor.value("stored", tensor.value("type", ""))));
  }
}

void run_inspect(const InspectOptions& options) {
  if (options.logits.empty()) {
    const json told = inspect_model(options.path);
    options.as_json ? print_json(told) : print_inspection(told);
    return;
  }
  const json logits = {{"logits", inspect_logits(options.path, ids_of(options.logits))}};
  print(logits.dump() + "\n");
}

}  // namespace

void add_import_command(CLI::App& app) {
  static ImportCommandOptions options;
  CLI::App* command =
      add_command(app, "import", "Bring in a model that others trained",
                  "calque import model.gguf checkpoints/mine --prune-vocabulary data/everyday/train.tsv");
  command
      ->add_option("SOURCE", options.import.source, "A Hugging Face folder, a GGUF file, or a llama2.c .bin")
      ->required()
      ->type_name("PATH");
  command->add_option("CHECKPOINT", options.import.destination, "Where the checkpoint goes")
      ->required()
      ->type_name("DIR");
  command->add_option("--tokenizer", options.import.tokenizer, "A tokenizer file instead of the source's own")
      ->type_name("FILE");
  command->add_option("--prune-vocabulary", options.prune_to, "Keep only the pieces that these files need")
      ->type_name("FILE");
  command->add_flag("--json", options.as_json, "What was imported, as JSON");
  command->callback([] { run_import(options); });
}

void add_export_command(CLI::App& app) {
  static ExportCommandOptions options;
  CLI::App* command = add_command(app, "export", "Take a model out, for other programs",
                                  "calque export demo demo.gguf --format gguf --type Q8_0 --causal");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  command->add_option("DEST", options.exporting.destination, "Folder (hf) or file (gguf) to write")
      ->required()
      ->type_name("PATH");
  command->add_option("--format", options.exporting.format, "hf: for transformers; gguf: for llama.cpp")
      ->check(CLI::IsMember({"hf", "gguf"}))
      ->capture_default_str();
  command->add_option("--type", options.exporting.type, "Of the weights: F32, F16, BF16 (hf), Q8_0 (gguf)")
      ->check(CLI::IsMember({"F32", "F16", "BF16", "Q8_0"}))
      ->capture_default_str();
  command->add_flag("--causal", options.exporting.causal,
                    "A prefix model as a causal one, which translates worse");
  command->callback([] { run_export(options); });
}

void add_inspect_command(CLI::App& app) {
  static InspectOptions options;
  CLI::App* command =
      add_command(app, "inspect", "What a checkpoint or model file holds, and whether it can be imported",
                  "calque inspect checkpoints/mine --logits '1 5 7 9'");
  command->add_option("PATH", options.path, "A checkpoint, GGUF, safetensors or llama2.c file")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--logits", options.logits,
                   "Run the model on these ids, causally, and print all logits as JSON")
      ->type_name("IDS");
  command->add_flag("--json", options.as_json, "As JSON");
  command->callback([] { run_inspect(options); });
}

}  // namespace calque::cli
