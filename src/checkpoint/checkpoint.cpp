#include "calque/checkpoint/checkpoint.h"

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/json.h"
#include "calque/base/text.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/data/sequence.h"
#include "calque/model/lora.h"
#include "tokenizer_json.h"
#include "transformers_files.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A byte-level tokenizer has no unknown token; padding is masked whatever it is.
int32_t pad_id(const Tokenizer& tokenizer) {
  return tokenizer.unknown_id() >= 0 ? tokenizer.unknown_id() : tokenizer.end_id();
}

// A tokenizer that has neither <sep> nor a newline has no tokens between source and target.
SequenceFormat known_format(const Tokenizer& tokenizer, const std::string& prompt) {
  try {
    return pair_format(tokenizer, prompt);
  } catch (const UserError&) {
    return text_format(tokenizer);
  }
}

// What `transformers` needs beside the weights to make the same ids, and to generate as calque does.
void write_tokenizer_files(const fs::path& folder, const CheckpointContent& content,
                           const Tokenizer& tokenizer, const ModelConfig& config) {
  write_file(folder / content.tokenizer_file, content.tokenizer);
  const bool byte_level = content.tokenizer_file == "tokenizer.json";
  json settings = {{"bos_token", tokenizer.piece(tokenizer.begin_id())},
                   {"eos_token", tokenizer.piece(tokenizer.end_id())},
                   {"clean_up_tokenization_spaces", false},
                   {"model_input_names", {"input_ids", "attention_mask"}},
                   {"model_max_length", config.context_length},
                   {"padding_side", "left"},
                   {"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!byte_level) {
    const auto file = sentence_piece_json(tokenizer, known_format(tokenizer, config.prompt));
    if (file) {
      write_file(folder / "tokenizer.json", file->dump() + "\n");
      settings["split_special_tokens"] = true;  // a "<sep>" in a text is text
    } else {
      settings.update({{"tokenizer_class", "LlamaTokenizer"}, {"add_prefix_space", true}, {"legacy", false}});
    }
    settings["unk_token"] = settings["pad_token"] = tokenizer.piece(tokenizer.unknown_id());
    if (tokenizer.separator_id()) settings["sep_token"] = tokenizer.piece(*tokenizer.separator_id());
  }
  write_file(folder / "tokenizer_config.json", settings.dump(2) + "\n");
  json never = json::array();  // ids that calque never generates
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (id != tokenizer.end_id() && (tokenizer.is_control(id) || id == tokenizer.unknown_id()))
      never.push_back(id);
  }
  for (int64_t id = tokenizer.size(); id < config.vocabulary; ++id)
    never.push_back(id);  // rows without a piece
  const json generation = {{"bos_token_id", tokenizer.begin_id()},
                           {"eos_token_id", tokenizer.end_id()},
                           {"pad_token_id", pad_id(tokenizer)},
                           {"suppress_tokens", never}};
  write_file(folder / "generation_config.json", generation.dump(2) + "\n");
}

}  // namespace

void write_checkpoint(const fs::path& folder, const CheckpointContent& content) {
  const fs::path temporary = folder.parent_path() / ("." + folder.filename().string() + ".tmp");
  fs::remove_all(temporary);  // left behind by a killed process
  fs::create_directories(temporary);
  if (content.adapters.empty()) {
    write_safetensors(temporary / "model.safetensors", content.weights, {{"format", "pt"}});
  } else {
    write_safetensors(temporary / "adapters.safetensors", content.adapters, {});
  }
  json config = content.config;
  const bool has_own_class = config.value("model_type", "") == "calque";
  if (has_own_class && content.adapters.empty()) {
    for (const auto& [name, text] : transformers_files::embedded_files) write_file(temporary / name, text);
  }
  if (!content.tokenizer.empty()) {
    const Tokenizer tokenizer = Tokenizer::from_bytes(content.tokenizer, "tokenizer");
    config["bos_token_id"] = tokenizer.begin_id();
    config["eos_token_id"] = tokenizer.end_id();
    config["pad_token_id"] = pad_id(tokenizer);
    const ModelConfig model = read_hf_config(config, "config.json");
    config["calque"]["separator"] = known_format(tokenizer, model.prompt).separator;
    if (content.adapters.empty()) {
      write_tokenizer_files(temporary, content, tokenizer, model);
    } else {
      write_file(temporary / content.tokenizer_file, content.tokenizer);
    }
  }
  write_file(temporary / "config.json", config.dump(2) + "\n");
  if (!content.readme.empty()) write_file(temporary / "README.md", content.readme);
  if (!content.progress.is_null())
    write_safetensors(temporary / "state.safetensors", content.state,
                      {{"progress", content.progress.dump()}});
  json manifest = json::object();
  for (const auto& entry : fs::directory_iterator(temporary))
    manifest[entry.path().filename().string()] = hex(hash_file(entry.path()));
  write_file(temporary / "manifest.json", manifest.dump(2) + "\n");
  replace_folder(temporary, folder);
}

namespace {

json read_manifest(const fs::path& folder) {
  if (!fs::exists(folder / "manifest.json")) return nullptr;
  json manifest = parse_json(read_file(folder / "manifest.json"), (folder / "manifest.json").string());
  if (!manifest.is_object())
    throw UserError(
        fmt::format("{}: expected a JSON object with checksums", (folder / "manifest.json").string()));
  for (const auto& [name, checksum] : manifest.items()) {  // link_checkpoint() follows these names
    if (name.empty() || fs::path(name).filename() != name || name == "." || name == "..")
      throw UserError(fmt::format("{}: \"{}\" is not the name of a file in the same folder",
                                  (folder / "manifest.json").string(), shorten(name, 60)));
  }
  return manifest;
}

constexpr const char* state_file = "state.safetensors";

}  // namespace

void link_checkpoint(const fs::path& from, const fs::path& to) {
  const fs::path temporary = to.parent_path() / ("." + to.filename().string() + ".tmp");
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  json manifest = read_manifest(from);
  for (const auto& [name, checksum] : manifest.items()) {
    if (name != state_file) link_or_copy(from / name, temporary);
  }
  manifest.erase(state_file);
  write_file(temporary / "manifest.json", manifest.dump(2) + "\n");
  replace_folder(temporary, to);
}

bool same_model(const fs::path& a, const fs::path& b) {
  json left = read_manifest(a), right = read_manifest(b);
  for (json* manifest : {&left, &right}) {
    if (manifest->is_object()) manifest->erase(state_file);
  }
  return left.is_object() && left == right;
}

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)) {
  if (!fs::is_directory(folder_)) throw UserError(fmt::format("{}: no such checkpoint", folder_.string()));
  manifest_ = read_manifest(folder_);
  const fs::path file = checked("config.json");
  const json config = parse_json(read_file(file), file.string());
  config_ = read_json_values(file.string(), [&] { return read_hf_config(config, file.string()); });
}

fs::path Checkpoint::checked(const std::string& name) const {
  const fs::path file = folder_ / name;
  if (manifest_.is_object() && manifest_.contains(name) && hex(hash_file(file)) != manifest_[name]) {
    throw UserError(
        fmt::format("{}: damaged: its checksum differs from the one in manifest.json", file.string()),
        "use another checkpoint of the run");
  }
  return file;
}

namespace {

// Refuses a configuration, of the file `name`, that asks for more memory than the weights in `folder`
// justify.
void check_size(const ModelConfig& config, const fs::path& name, const fs::path& folder) {
  if (!fs::exists(folder / "model.safetensors"))
    throw UserError(
        fmt::format(
            "{}: no model.safetensors in the folder{}", folder.string(),
            fs::exists(folder / "model.safetensors.index.json") ? ": its weights are in several files" : ""),
        "`calque import SOURCE CHECKPOINT` makes one file of it");
  int64_t weights = 0;  // mutate: one more makes no difference to a check this coarse
  const Safetensors file(folder / "model.safetensors");
  for (const auto& [key, entry] : file.entries()) weights += c10::multiply_integers(entry.shape);
  check_weight_count(config, weights, name.string());
}

AdapterConfig read_adapter_config(const json& own, const std::string& file) {
  return read_json_values(file, [&] {
    const json lora = own.value("lora", json::object());
    const auto rank = lora.value("rank", int64_t{1}), first_layer = lora.value("first_layer", int64_t{0});
    if (rank < 1 || rank > 4096 || first_layer < 0)
      throw UserError(
          fmt::format("{}: calque.lora: rank {} or first_layer {} is out of range", file, rank, first_layer));
    const double scale = lora.value("scale", 1.0);
    if (!(std::abs(scale) <= 1e6))
      throw UserError(fmt::format("{}: calque.lora: scale {} is out of range", file, scale));
    return AdapterConfig{rank, scale, 0,
                         lora.value(lora.contains("target_modules") ? "target_modules" : "matrices",
                                    std::vector<std::string>{}),
                         first_layer};
  });
}

}  // namespace

// What config.json says for calque alone.
json Checkpoint::own_settings() const {
  const std::string file = checked("config.json").string();
  const json config = parse_json_object(read_file(file), file);
  return read_json_values(file, [&] { return config.value("calque", json::object()); });
}

bool Checkpoint::has_adapters() const { return fs::exists(folder_ / "adapters.safetensors"); }

std::shared_ptr<Decoder> Checkpoint::make_decoder() const {
  if (has_adapters()) {
    const auto decoder = make_base();
    add_own_adapters(*decoder);
    return merge_adapters(*decoder);
  }
  check_size(config_, folder_ / "config.json", folder_);
  auto decoder = std::make_shared<Decoder>(config_);
  load_into(*decoder);
  return decoder;
}

std::shared_ptr<Decoder> Checkpoint::make_base() const {
  const fs::path base = find_base(own_settings());
  check_size(config_, folder_ / "config.json", base);
  auto decoder = std::make_shared<Decoder>(config_);
  load_weights(*decoder, Safetensors(base / "model.safetensors"), base.string());
  return decoder;
}

void Checkpoint::add_own_adapters(Decoder& decoder) const {
  add_adapters(decoder, read_adapter_config(own_settings(), (folder_ / "config.json").string()), 0,
               WeightPrecision::float32);
  load_adapters_into(decoder);
}

std::shared_ptr<Decoder> Checkpoint::make_packed_base(WeightPrecision precision) const {
  auto decoder = make_base();
  decoder->eval();
  decoder->pack(precision);
  return decoder;
}

std::shared_ptr<Decoder> Checkpoint::make_adapted(const Decoder& packed_base) const {
  auto decoder = std::make_shared<Decoder>(config_);
  decoder->eval();
  decoder->share_packed(packed_base);
  add_own_adapters(*decoder);
  pack_adapters(*decoder);
  return decoder;
}

// Looks for the base model in the run's own copy, then where it was when the adapters were trained.
fs::path Checkpoint::find_base(const json& own) const {
  const auto text = [&](const char* key) {
    return read_json_values((folder_ / "config.json").string(), [&] { return own.value(key, ""); });
  };
  const std::string hash = text("base_hash");
  std::vector<fs::path> candidates;
  if (own.contains("base_inside")) candidates.push_back(folder_ / text("base_inside"));
  candidates.emplace_back(text("base"));
  std::string tried;
  for (const fs::path& base : candidates) {
    const fs::path weights = base / "model.safetensors";
    const bool exists = fs::exists(weights);
    if (exists && hex(hash_file(weights)) == hash) return base;
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", base.lexically_normal().string(),
                         exists ? "a different model: its checksum differs" : "does not exist");
  }
  throw UserError(
      fmt::format("{}: the base model of its adapters was not found; tried {}", folder_.string(), tried),
      "adapters work only with the base model that they were trained on: copy the whole run, which keeps it "
      "in its folder base/, or `calque export` the run to one model without adapters");
}

void Checkpoint::load_adapters_into(const Decoder& decoder) const {
  const torch::NoGradGuard no_gradients;
  const fs::path file = checked("adapters.safetensors");
  const Safetensors adapters(file);
  for (const auto& parameter : decoder.named_parameters()) {
    if (parameter.key().find("adapter_") == std::string::npos) continue;
    const torch::Tensor value = adapters.tensor(parameter.key());
    if (value.sizes() != parameter.value().sizes())
      throw UserError(fmt::format("{}: {} has shape [{}], expected [{}]", file.string(), parameter.key(),
                                  fmt::join(value.sizes(), ", "),
                                  fmt::join(parameter.value().sizes(), ", ")));
    if (!value.isfinite().all().item<bool>())
      throw UserError(fmt::format("{}: {} has values that are not finite", file.string(), parameter.key()));
    parameter.value().copy_(value);
  }
}

void Checkpoint::load_into(const Decoder& decoder) const {
  const fs::path file = checked("model.safetensors");
  load_weights(decoder, Safetensors(file), file.string());
}

void Checkpoint::check_files() const {
  if (!manifest_.is_object()) return;
  for (const auto& [name, checksum] : manifest_.items()) checked(fs::path(name).filename().string());
}

bool Checkpoint::has_tokenizer() const {
  return fs::exists(folder_ / "tokenizer.model") || fs::exists(folder_ / "tokenizer.json");
}

Tokenizer Checkpoint::tokenizer() const {
  if (!has_tokenizer()) {
    throw UserError(fmt::format("{}: the checkpoint has no tokenizer", folder_.string()),
                    "`calque import SOURCE CHECKPOINT --tokenizer FILE` adds one");
  }
  return Tokenizer::load(
      checked(fs::exists(folder_ / "tokenizer.model") ? "tokenizer.model" : "tokenizer.json"));
}

std::string Checkpoint::adapter_base_hash() const {
  return read_json_values((folder_ / "config.json").string(),
                          [&] { return own_settings().value("base_hash", ""); });
}

Safetensors Checkpoint::state() const { return Safetensors(checked(state_file)); }

json Checkpoint::progress() const {
  const auto metadata = state().metadata();
  const auto found = metadata.find("progress");
  if (found == metadata.end()) return json::object();
  return parse_json_object(found->second, (folder_ / state_file).string());
}

}  // namespace calque
