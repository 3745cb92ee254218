// calque import, export, inspect: models that come from elsewhere or go there.
#include "calque/checkpoint/import.h"

#include <fmt/ranges.h>

#include <sstream>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/cli/command.h"
#include "calque/runs/model_source.h"

namespace calque::cli {
namespace {

using nlohmann::json;

struct ImportCommandOptions {
  ImportOptions import;
  std::vector<std::filesystem::path> prune_to;
  bool as_json = false;
};

void run_import(ImportCommandOptions& options) {
  if (!std::filesystem::exists(options.import.source))
    throw UserError(fmt::format("{}: no such file or folder", options.import.source.string()),
                    "`tools/get-checkpoint OWNER/NAME` downloads a model of the Hugging Face Hub and imports "
                    "it; `tools/get-checkpoint --help` lists others");
  if (options.import.destination.empty())
    throw UserError("DEST is missing", "the folder of the new checkpoint, for example checkpoints/mine");
  for (const auto& file : options.prune_to) {
    CorpusPart part;
    LineReader reader(file);
    std::string_view first;
    (reader.next(first) && first.find('\t') != std::string_view::npos ? part.pairs : part.text) = file;
    options.import.prune_to.push_back(part);
  }
  const ImportResult result = import_model(options.import);
  if (options.as_json) return print_json(result.to_json());
  log::info("{}: {}, {}, {} parameters, {} pieces ({})", options.import.destination.string(), result.format,
            result.architecture, format_count(result.parameters), format_count(result.model.vocabulary),
            result.tokenizer);
  if (result.pieces_before) {
    log::info("the corpus needs {} of {} pieces; {} parameters fewer", format_count(result.model.vocabulary),
              format_count(*result.pieces_before),
              format_count(*result.parameters_before - result.parameters));
  }
}

struct ExportCommandOptions {
  std::string model;
  ExportOptions exporting;
};

// A name such as model.bin or model.onnx, for which a folder would be a surprise. In demo-1.2 the ending is a
// number.
bool names_a_file(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending.size() > 1 && !(ending[1] >= '0' && ending[1] <= '9');
}

void run_export(ExportCommandOptions& options) {
  const std::filesystem::path& destination = options.exporting.destination;
  const bool names_gguf = destination.extension() == ".gguf";
  if (options.exporting.format.empty()) {
    if (!names_gguf && names_a_file(destination))
      throw UserError(
          fmt::format("{}: no format has the ending {}", destination.string(),
                      destination.extension().string()),
          "NAME.gguf is a file for llama.cpp, a name without ending a folder for transformers; or say "
          "--format gguf or --format hf");
    options.exporting.format = names_gguf ? "gguf" : "hf";
  }
  if (names_gguf && options.exporting.format == "hf")
    throw UserError(fmt::format("{}: --format hf writes a folder, not a .gguf file",
                                options.exporting.destination.string()),
                    "leave --format out, or name a folder");
  options.exporting.checkpoint = find_model(runs_folder(), options.model).checkpoint;
  const ExportResult result = export_model(options.exporting);
  log::info("{}: {} parameters; read back, its logits differ by at most {:.1e}",
            options.exporting.destination.string(), format_count(result.parameters),
            result.largest_logit_difference);
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
    if (!id) throw UserError(fmt::format("--logits: \"{}\" is not a token id", shorten(word, 20)));
    ids.push_back(*id);
  }
  return ids;
}

void print_inspection(const Inspection& found) {
  const auto line = [](const std::string& name, const std::string& value) {
    print(fmt::format("{:<24}{}\n", name, shorten(value, 1000)));  // without control characters
  };
  line("format", found.format);
  if (found.architecture) line("architecture", *found.architecture);
  if (found.tokenizer) line("tokenizer", *found.tokenizer);
  if (found.parameters) line("parameters", format_count(*found.parameters));
  if (found.model) {
    const json model = describe_model(*found.model);
    for (const auto& [key, value] : model.items())
      line("  " + key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  line("can be imported", found.importable() ? "yes" : "no");
  for (const std::string& problem : found.problems) line("  because", problem);
  print(fmt::format("{} tensors\n", found.tensors.size()));
  for (const Inspection::Tensor& tensor : found.tensors)
    print(fmt::format("  {:<52} [{}]  {}\n", shorten(tensor.name, 200), fmt::join(tensor.shape, ", "),
                      shorten(tensor.stored, 200)));
}

void run_inspect(InspectOptions& options) {
  options.path = checkpoint_of(options.path);

  if (options.logits.empty()) {
    const Inspection found = inspect_model(options.path);
    options.as_json ? print_json(found.to_json()) : print_inspection(found);
    return;
  }
  const json logits = {{"logits", inspect_logits(options.path, ids_of(options.logits))}};
  print(logits.dump() + "\n");
}

}  // namespace

void add_import_command(CLI::App& app) {
  static ImportCommandOptions options;
  CLI::App* command =
      add_command(app, "import", "Import a pretrained model",
                  "calque import model.gguf checkpoints/mine --prune-vocabulary data/everyday/train.tsv");
  command
      ->add_option("SOURCE", options.import.source, "A Hugging Face folder, a GGUF file, or a llama2.c .bin")
      ->required()
      ->type_name("PATH");
  command->add_option("DEST", options.import.destination, "Folder of the new checkpoint")->type_name("DIR");
  command
      ->add_option("--tokenizer", options.import.tokenizer,
                   "Tokenizer file to use instead of the source's own")
      ->type_name("FILE");
  command
      ->add_option("--prune-vocabulary", options.prune_to,
                   "Keep only the pieces of the vocabulary that these files need")
      ->type_name("FILE");
  command->add_flag("--json", options.as_json, "Print the result as JSON");
  command->callback([] { run_import(options); });
}

void add_export_command(CLI::App& app) {
  static ExportCommandOptions options;
  options.exporting.format.clear();
  CLI::App* command = add_command(app, "export", "Export a model for transformers or llama.cpp",
                                  "calque export demo demo-hf");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  command->add_option("DEST", options.exporting.destination, "Folder (hf) or file (gguf) to write")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--format", options.exporting.format,
                   "hf: for transformers; gguf: for llama.cpp; default: by DEST's ending")
      ->check(CLI::IsMember({"hf", "gguf"}));
  command
      ->add_option("--type", options.exporting.type,
                   "Type of the weights: F32 and F16 (both formats), BF16 (hf only), Q8_0 (gguf only)")
      ->check(CLI::IsMember({"F32", "F16", "BF16", "Q8_0"}))
      ->capture_default_str();
  command->add_flag("--causal", options.exporting.causal,
                    "Export a prefix model as a causal one, which translates worse");
  command->add_flag(
      "--skip-normalization", options.exporting.skip_normalization,
      "gguf: export although llama.cpp will not normalise text as the tokenizer does (NFC, NFKC)");
  command->callback([] { run_export(options); });
}

void add_inspect_command(CLI::App& app) {
  static InspectOptions options;
  CLI::App* command = add_command(
      app, "inspect", "Show what a checkpoint or model file contains, and whether it can be imported",
      "calque inspect checkpoints/mine --logits '1 5 7 9'");
  command->add_option("PATH", options.path, "A checkpoint, GGUF, safetensors or llama2.c file")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--logits", options.logits,
                   "Run the model on these ids, causally, and print all logits as JSON")
      ->type_name("IDS");
  command->add_flag("--json", options.as_json, "Print as JSON");
  command->callback([] { run_inspect(options); });
}

}  // namespace calque::cli
