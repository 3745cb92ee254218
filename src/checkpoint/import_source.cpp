#include "calque/checkpoint/import_source.h"

#include <algorithm>
#include <set>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/json.h"
#include "calque/base/text.h"
#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/gguf.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/safetensors.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/data/sequence.h"
#include "calque/data/tokenizer.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

std::string llama2c_tokenizer(std::string_view bytes, const std::string& name);

namespace {

json read_json(const fs::path& file) { return parse_json_object(read_file(file), file.string()); }

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Buffers that some files contain besides the weights.
bool is_buffer(const std::string& name) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias");
}

// The id of a special token, from tokenizer_config.json or the model's config.json; -1 if unknown.
int64_t special_id(const fs::path& folder, const json& config, const char* name, const json& tokenizer) {
  const fs::path file = folder / "tokenizer_config.json";
  const json settings = fs::exists(file) ? parse_json(read_file(file), file.string()) : json();
  if (settings.is_object() && settings.contains(name)) {
    const json& token = settings[name];
    const std::string text = token.is_string()   ? token.get<std::string>()
                             : token.is_object() ? token.value("content", "")
                                                 : "";
    for (const json& added : tokenizer.value("added_tokens", json::array())) {
      if (!text.empty() && added.value("content", "") == text)
        return added.value("id", int64_t{-1});  // mutate: the tokenizer refuses a token without an id
    }
  }
  const std::string key = std::string(name) + "_id";
  if (config.contains(key) && config[key].is_number_integer()) return config[key].get<int64_t>();
  if (config.contains(key) && config[key].is_array() && !config[key].empty() &&
      config[key][0].is_number_integer())
    return config[key][0].get<int64_t>();
  return -1;
}

// names: the tensors to take from the file; null: all. prefix: added to names that lack it.
void add_safetensors(const fs::path& file, const std::set<std::string>* names, const std::string& prefix,
                     ImportSource& source) {
  const auto tensors = std::make_shared<const Safetensors>(file);
  for (const auto& [name, entry] : tensors->entries()) {
    if (is_buffer(name) || (names != nullptr && !names->contains(name))) continue;
    const std::string hf_name = name.starts_with(prefix) || name == "lm_head.weight" ? name : prefix + name;
    if (source.tensors.contains(hf_name))
      throw UserError(fmt::format("{}: tensor {} is also in another file", file.string(), shorten(name, 80)));
    source.tensors[hf_name] = {entry.shape, fmt::format("{}, {}", name, c10::toString(entry.type)),
                               [tensors, name = name] { return tensors->tensor(name).to(torch::kFloat32); }};
  }
}

}  // namespace

std::string convert_tokenizer(const fs::path& file, int64_t begin, int64_t end) {
  std::string bytes = read_file(file);
  if (bytes.starts_with('{')) {
    json tokenizer = parse_json_object(bytes, file.string());
    if (!tokenizer["model"].contains("vocab"))
      throw UserError(fmt::format("{}: not a valid tokenizer.json: model.vocab is missing", file.string()));
    if (end >= 0) {
      read_json_values(file.string(), [&] { set_begin_and_end(tokenizer, begin < 0 ? end : begin, end); });
    }
    return tokenizer.dump();
  }
  // A SentencePiece model begins with a protobuf tag, llama2.c's tokenizer with a small 32-bit integer.
  const bool is_llama2c = bytes.size() > 4 && bytes[1] == 0 && bytes[2] == 0 && bytes[3] == 0;
  return is_llama2c ? llama2c_tokenizer(bytes, file.string()) : bytes;
}

namespace {

// A tokenizer.json with the ids of begin and end that tokenizer_config.json beside it, or the model, names.
std::string convert_tokenizer_json(const fs::path& file, const json& config) {
  const json tokenizer = read_json(file);
  const auto id_of = [&](const char* name) {
    return read_json_values((file.parent_path() / "tokenizer_config.json").string() + " or tokenizer.json",
                            [&] { return special_id(file.parent_path(), config, name, tokenizer); });
  };
  return convert_tokenizer(file, id_of("bos_token"), id_of("eos_token"));
}

}  // namespace

ImportSource open_hf_folder(const fs::path& folder) {
  ImportSource source;
  source.path = folder;
  source.format = "Hugging Face folder";
  const json config = read_json(folder / "config.json");
  const std::string config_file = (folder / "config.json").string();
  source.architecture = read_json_values(config_file, [&] { return config.value("model_type", "?"); });
  try {
    source.config = read_json_values(config_file, [&] { return read_hf_config(config, config_file); });
  } catch (const UserError& error) {
    source.problems.emplace_back(error.what());
  }
  const std::string prefix = source.architecture == "gpt2"     ? "transformer."
                             : source.architecture == "calque" ? ""
                                                               : "model.";
  if (fs::exists(folder / "model.safetensors.index.json")) {
    const json index = read_json(folder / "model.safetensors.index.json");
    std::map<std::string, std::set<std::string>> files;
    if (!index.contains("weight_map") || !index["weight_map"].is_object())
      throw UserError(fmt::format("{}: weight_map is missing or is not an object",
                                  (folder / "model.safetensors.index.json").string()));
    for (const auto& [name, file] : index["weight_map"].items()) {
      const std::string part = file.is_string() ? file.get<std::string>() : "";
      if (part.empty() || part.find('/') != std::string::npos || part.starts_with('.'))
        throw UserError(fmt::format("{}: \"{}\" is not the name of a file in the same folder",
                                    (folder / "model.safetensors.index.json").string(), shorten(part, 60)));
      files[part].insert(name);
    }
    for (const auto& [file, names] : files) add_safetensors(folder / file, &names, prefix, source);
  } else if (fs::exists(folder / "model.safetensors")) {
    add_safetensors(folder / "model.safetensors", nullptr, prefix, source);
  } else {
    source.problems.push_back("no model.safetensors in the folder");
  }
  if (source.config.tied_embeddings) source.tensors.erase("lm_head.weight");
  if (fs::exists(folder / "tokenizer.model")) {
    source.tokenizer = read_file(folder / "tokenizer.model");
    source.tokenizer_kind = "SentencePiece";
  } else if (fs::exists(folder / "tokenizer.json")) {
    source.tokenizer = convert_tokenizer_json(folder / "tokenizer.json", config);
    source.tokenizer_kind = "tokenizer.json";
  }
  return source;
}

namespace {

void check_weight_count(const ImportSource& source) {
  int64_t weights = 0;
  for (const auto& [name, tensor] : source.tensors) weights += c10::multiply_integers(tensor.shape);
  const fs::path described = fs::is_directory(source.path) ? source.path / "config.json" : source.path;
  check_weight_count(source.config, weights, described.string());
}

}  // namespace

ImportSource open_import_source(const fs::path& path, const fs::path& tokenizer) {
  ImportSource source;
  if (fs::is_directory(path)) {
    if (!fs::exists(path / "config.json"))
      throw UserError(fmt::format("{}: not a Hugging Face folder: config.json is missing", path.string()));
    source = open_hf_folder(path);
  } else {
    check_readable(path);
    if (is_gguf(path)) {
      source = open_gguf(path);
    } else if (is_llama2c(path)) {
      source = open_llama2c(path);
    } else {
      throw UserError(fmt::format("{}: not in a known format", path.string()),
                      "expected a Hugging Face folder, a GGUF file or a llama2.c file");
    }
  }
  source.path = path;
  if (!tokenizer.empty()) {
    const bool is_json = read_file(tokenizer).starts_with('{');
    const json config = fs::is_directory(path) ? read_json(path / "config.json") : json::object();
    source.tokenizer =
        is_json ? convert_tokenizer_json(tokenizer, config) : convert_tokenizer(tokenizer, 1, 2);
    source.tokenizer_kind = tokenizer.filename().string();
  }
  if (source.tokenizer) {
    try {
      const Tokenizer opened = Tokenizer::from_bytes(*source.tokenizer, path.string());
      // Embedding matrices often have more rows than the tokenizer has pieces (padding); never fewer.
      if (opened.size() > source.config.vocabulary)
        source.problems.push_back(
            fmt::format("the tokenizer has {} pieces, but the model's vocabulary only {}", opened.size(),
                        source.config.vocabulary));
    } catch (const UserError& error) {
      source.problems.emplace_back(error.what());
    }
  }
  if (source.problems.empty()) {
    try {
      check_weight_count(source);
    } catch (const UserError& error) {
      source.problems.emplace_back(error.what());
    }
  }
  return source;
}

std::shared_ptr<Decoder> load_decoder(const ImportSource& source) {
  if (!source.problems.empty()) throw UserError(source.problems.front());
  const torch::NoGradGuard no_gradients;
  const std::string path = source.path.string();
  ModelConfig config = source.config;
  if (config.positions == PositionKind::rope)
    config.context_length = std::min(config.context_length, max_rope_positions);
  auto decoder = std::make_shared<Decoder>(config);
  std::set<std::string> used;
  for (const auto& [name, view] : weight_views(*decoder)) {
    const auto found = source.tensors.find(name);
    if (found == source.tensors.end())
      throw UserError(fmt::format("{}: tensor {} is missing; expected shape {}", path, name,
                                  shape_text(view.sizes().vec())));
    if (found->second.shape != view.sizes().vec()) {
      throw UserError(fmt::format("{}: {} ({}) has shape {}, expected {}", path, name,
                                  shorten(found->second.stored_as, 80), shape_text(found->second.shape),
                                  shape_text(view.sizes().vec())));
    }
    view.copy_(found->second.read());
    used.insert(name);
  }
  for (const auto& [name, tensor] : source.tensors) {
    if (!used.contains(name))
      throw UserError(fmt::format("{}: {} {} is not part of this model", path, shorten(name, 80),
                                  shape_text(tensor.shape)));
  }
  return decoder;
}

PrunedVocabulary prune_vocabulary(const std::string& bytes, const std::string& prompt,
                                  const LinesOfText& lines) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(bytes, "tokenizer");
  std::vector<bool> used(static_cast<size_t>(tokenizer.size()), false);
  for (std::string line; lines(line);) {
    for (const int32_t id : tokenizer.encode(line)) used[static_cast<size_t>(id)] = true;
  }
  // What stands around source and target: <sep>, a newline, or the text of the prompt.
  const SequenceFormat format = pair_format(tokenizer, prompt);
  for (const auto* ids : {&format.begin, &format.separator}) {
    for (const int32_t id : *ids) used[static_cast<size_t>(id)] = true;
  }
  for (const int32_t id : tokenizer.encode("\n")) used[static_cast<size_t>(id)] = true;  // few-shot examples
  std::vector<bool> kept(used.size(), false);
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const auto at = static_cast<size_t>(id);
    const bool needed = tokenizer.is_byte(id) || id == tokenizer.begin_id() || id == tokenizer.end_id() ||
                        id == tokenizer.unknown_id() || (tokenizer.is_control(id) && used[at]);
    if (needed) kept[at] = true;
    if (!used[at]) continue;
    for (const int32_t part : tokenizer.pieces().parts_of(id)) kept[static_cast<size_t>(part)] = true;
  }
  PrunedVocabulary pruned;
  std::vector<int32_t> ids;
  for (size_t id = 0; id < kept.size(); ++id) {
    if (!kept[id]) continue;
    ids.push_back(static_cast<int32_t>(id));
    pruned.kept.push_back(static_cast<int64_t>(id));
  }
  pruned.tokenizer = tokenizer.pieces().pruned(ids);
  return pruned;
}

std::shared_ptr<Decoder> keep_rows(const Decoder& decoder, const std::vector<int64_t>& kept) {
  const torch::NoGradGuard no_gradients;
  ModelConfig config = decoder.config();
  config.vocabulary = static_cast<int64_t>(kept.size());
  auto smaller = std::make_shared<Decoder>(config);
  const auto rows = torch::tensor(kept, torch::kInt64);
  const auto from = decoder.named_parameters();
  for (const auto& parameter : smaller->named_parameters()) {
    const torch::Tensor& old = from[parameter.key()];
    const bool by_piece = old.size(0) == decoder.config().vocabulary &&
                          (parameter.key() == "embedding.weight" || parameter.key() == "output");
    parameter.value().copy_(by_piece ? old.index_select(0, rows) : old);
  }
  return smaller;
}

}  // namespace calque
