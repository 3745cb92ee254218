#include "calque/cli/model_options.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/distributed/world.h"
#include "calque/kernels/device.h"
#include "calque/kernels/threads.h"

namespace calque::cli {
namespace {

std::string flag_name(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

void add_thread_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--threads", options.threads, "Processor threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("--precision", options.precision, "Weight precision: float32, bfloat16 or int8 (fastest)")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
      ->capture_default_str();
  add_device_option(command, options.device);
}

void add_device_option(CLI::App& command, std::string& device) {
  command
      .add_option("--device", device, "cpu, cuda, cuda:1, mps or another that LibTorch has; auto: the best")
      ->type_name("DEVICE")
      ->capture_default_str();
}

void add_training_device_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option_function<std::string>(
          "--device",
          [&overrides](const std::string& device) { overrides.push_back("train.device=" + device); },
          "Short for train.device=DEVICE: cpu, cuda, cuda:1, mps or another that LibTorch has; auto: the "
          "best")
      ->type_name("DEVICE");
}

torch::Device chosen_device(const std::string& device) { return find_device(device, "--device"); }

void add_decode_options(CLI::App& command, ModelOptions& options) {
  DecodeConfig defaults;
  for (const Field& field : fields(defaults)) {
    const std::string name = flag_name(field.name), help = capitalised(field.help);
    if (field.schema.value("type", nlohmann::json()) == "boolean") {
      const bool on = field.write({}).as<bool>();  // the flag switches the default
      command.add_flag_callback(
          on ? "--no-" + name.substr(2) : name,
          [&options, key = field.name, on] { options.decode[key] = on ? "false" : "true"; },
          on ? "Do not: " + field.help : help);
      continue;
    }
    command
        .add_option_function<std::string>(
            name, [&options, key = field.name](const std::string& value) { options.decode[key] = value; },
            help)
        ->type_name(field.type == "path" ? "FILE" : "N");
  }
}

void apply_decode_options(const ModelOptions& options, DecodeConfig& config) {
  for (const Field& field : fields(config)) {
    const auto given = options.decode.find(field.name);
    if (given == options.decode.end()) continue;
    try {
      field.read(YAML::Node(given->second), {});
    } catch (const BadValue& error) {
      throw UserError(fmt::format("{}: {}", flag_name(field.name), error.what()), error.help());
    }
  }
  for (const char* key : {"temperature", "top_k", "top_p", "seed"}) {
    if (options.decode.contains(key) && !config.sample)
      log::warn("{} has no effect without --sample", flag_name(key));
  }
  check_decode(config);
  if (options.threads > available_cores())
    log::warn("--threads {}, but this machine has {} cores: more threads are slower", options.threads,
              available_cores());
}

std::unique_ptr<Translator> open_model(const ModelSource& source, const ModelOptions& options) {
  set_num_threads(options.threads, world_of_this_process().local_size);
  const auto& names = EnumNames<WeightPrecision>::names;
  const auto found = std::find(std::begin(names), std::end(names), options.precision);
  auto translator =
      open_translator(source, static_cast<WeightPrecision>(std::distance(std::begin(names), found)),
                      chosen_device(options.device));
  keep_freed_memory();  // of activations; the weights stay where they are
  apply_decode_options(options, translator->config());
  if (options.decode.contains("shots")) translator->use_examples(translator->config().shots);
  return translator;
}

}  // namespace calque::cli
