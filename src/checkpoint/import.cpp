#include "calque/checkpoint/import.h"

#include <fmt/ranges.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/gguf.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/import_source.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/data/batch.h"
#include "calque/data/sentence_reader.h"
#include "calque/data/sequence.h"
#include "gguf_tokenizer.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::shared_ptr<Decoder> open_decoder(const fs::path& path) {
  // Our own checkpoints have a manifest, against which their files are checked.
  if (fs::exists(path / "manifest.json")) return Checkpoint(path).make_decoder();
  return load_decoder(open_import_source(path));
}

torch::Tensor causal_logits(const Decoder& decoder, const std::vector<int64_t>& ids) {
  const torch::NoGradGuard no_gradients;
  const auto count = static_cast<int64_t>(ids.size());
  if (count == 0) throw UserError("expected at least one token id, found none");
  if (count > decoder.config().context_length)
    throw UserError(fmt::format("{} token ids do not fit into the model's context of {}", count,
                                decoder.config().context_length));
  for (const int64_t id : ids) {
    if (id < 0 || id >= decoder.config().vocabulary)
      throw UserError(fmt::format("token id {} is not in the vocabulary, which has {} pieces", id,
                                  decoder.config().vocabulary));
  }
  Layout layout;
  layout.offsets = layout.query_offsets = {0, count};
  layout.prefix_ends = {0};
  layout.positions = layout.query_rows = torch::arange(count, torch::kInt64);
  return decoder.logits(index_tensor(ids), layout);
}

void check_destination(const fs::path& destination) {
  if (fs::exists(destination))
    throw UserError(fmt::format("{}: already exists", destination.string()),
                    "choose another destination, or remove it first");
}

CheckpointContent content_of(const Decoder& decoder, const std::string& tokenizer) {
  CheckpointContent content;
  for (const auto& [name, view] : weight_views(decoder))
    content.weights.emplace_back(name, view.contiguous());
  content.config = hf_config(decoder.config());
  content.tokenizer = tokenizer;
  if (tokenizer.starts_with('{')) content.tokenizer_file = "tokenizer.json";
  return content;
}

}  // namespace

namespace {

// How to prompt the model, for whoever opens the folder with transformers.
std::string model_card(const ModelConfig& config, const Tokenizer& tokenizer) {
  const SequenceFormat format = pair_format(tokenizer, config.prompt);
  const std::string trust = hf_config(config).contains("auto_map") ? ", trust_remote_code=True" : "";
  std::string notes = config.is_prefix()
                          ? "Attention is prefix: the source attends to itself in both directions."
                          : "Attention is causal.";
  if (config.restarts_positions())
    notes += " Positions begin at 0 again at the last token before the translation.";
  if (!trust.empty()) notes += " modeling_calque.py in this folder computes the model.";
  return fmt::format(
      "# A French-English model\n\n"
      "Exported by calque. If it was trained on pairs, it translates, and expects these token ids:\n\n"
      "    {} <source> {} <translation> {}\n\n"
      "{}\n\n"
      "```python\n"
      "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
      "import torch\n"
      "model = AutoModelForCausalLM.from_pretrained(\".\"{})\n"
      "tokenizer = AutoTokenizer.from_pretrained(\".\"{})\n"
      "source = tokenizer(\"Le chat dort.\", add_special_tokens=False)[\"input_ids\"]\n"
      "ids = torch.tensor([[{}] + source + [{}]])\n"
      "out = model.generate(ids, max_new_tokens=60, num_beams=4, eos_token_id={})\n"
      "print(tokenizer.decode(out[0, ids.shape[1]:], skip_special_tokens=True))\n"
      "```\n",
      fmt::join(format.begin, " "), fmt::join(format.separator, " "), format.end, notes, trust, trust,
      fmt::join(format.begin, ", "), fmt::join(format.separator, ", "), format.end);
}

// The first of some texts whose ids differ when a tokenizer is read back. They are in NFKC, with white space
// that every tokenizer keeps, so that a normalisation that the format cannot express makes no difference.
std::optional<std::string> different_ids(const Tokenizer& tokenizer, const ImportSource& written) {
  if (!written.tokenizer) return "(no tokenizer)";
  const Tokenizer other = Tokenizer::from_bytes(*written.tokenizer, "the exported tokenizer");
  for (const char* text : {"Où est l'été ?", "She's 12345 years old, isn't she? YES'M", "« déjà » – naïve",
                           "漢字 и кириллица", "\U0001F600", "x=f(y)+[2*z];", "a"}) {
    if (tokenizer.encode(text) != other.encode(text)) return text;
  }
  return std::nullopt;
}

}  // namespace

ImportResult import_model(const ImportOptions& options) {
  check_destination(options.destination);
  if (fs::exists(options.source / "manifest.json")) Checkpoint(options.source).check_files();
  const ImportSource source = open_import_source(options.source, options.tokenizer);
  std::shared_ptr<Decoder> decoder = load_decoder(source);
  ImportResult result{source.format, source.architecture, source.tokenizer_kind, {}, 0};
  std::string tokenizer = source.tokenizer.value_or("");
  if (!options.prune_to.empty()) {
    if (tokenizer.empty())
      throw UserError("the vocabulary cannot be pruned: the model has no tokenizer",
                      "pass one with --tokenizer FILE");
    SentenceReader sentences(options.prune_to);
    const PrunedVocabulary pruned = prune_vocabulary(tokenizer, source.config.prompt,
                                                     [&](std::string& line) { return sentences.next(line); });
    result.pieces_before = decoder->config().vocabulary;
    result.parameters_before = decoder->parameter_count();
    decoder = keep_rows(*decoder, pruned.kept);
    tokenizer = pruned.tokenizer;
  }
  if (!tokenizer.empty()) {
    // The embedding matrix may have more rows than the tokenizer has pieces; no id refers to these rows.
    const int32_t pieces = Tokenizer::from_bytes(tokenizer, "tokenizer").size();
    if (pieces < decoder->config().vocabulary) {
      std::vector<int64_t> kept(static_cast<size_t>(pieces));
      for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int64_t>(i);
      decoder = keep_rows(*decoder, kept);
    }
  }
  for (const auto& [name, tensor] : weight_views(*decoder)) {
    if (!tensor.isfinite().all().item<bool>())
      throw UserError(fmt::format("{}: {} contains NaN or infinite values", options.source.string(), name));
  }
  fs::create_directories(fs::absolute(options.destination).parent_path());
  write_checkpoint(fs::absolute(options.destination), content_of(*decoder, tokenizer));
  result.parameters = decoder->parameter_count();
  result.model = decoder->config();
  return result;
}

json ImportResult::to_json() const {
  json all = {{"format", format},         {"architecture", architecture}, {"tokenizer", tokenizer},
              {"parameters", parameters}, {"pieces", model.vocabulary},   {"model", describe_model(model)}};
  if (pieces_before) all["pieces_before"] = *pieces_before;
  if (parameters_before) all["parameters_before"] = *parameters_before;
  return all;
}

Inspection inspect_model(const fs::path& path) {
  Inspection found;
  if (fs::is_regular_file(path) && !is_gguf(path) && !is_llama2c(path) &&
      path.extension() == ".safetensors") {
    const Safetensors file(path);
    found.format = "safetensors file";
    found.problems = {
        "a safetensors file does not describe its model; inspect its folder, with config.json, instead"};
    for (const auto& [name, entry] : file.entries())
      found.tensors.push_back({name, entry.shape, c10::toString(entry.type)});
    return found;
  }
  const ImportSource source = open_import_source(path);
  found.format = source.format;
  found.architecture = source.architecture;
  found.tokenizer = source.tokenizer_kind;
  found.problems = source.problems;
  if (found.problems.empty()) {
    found.model = source.config;
    found.parameters = 0;  // counted from the tensors' shapes, without building the model
    for (const auto& [name, tensor] : source.tensors) {
      *found.parameters += c10::multiply_integers(tensor.shape);
      if (!tensor.read)
        found.problems.push_back(name.substr(name.find(' ') + 1) + " is not part of this model");
    }
  }
  for (const auto& [name, tensor] : source.tensors)
    found.tensors.push_back({name, tensor.shape, tensor.stored_as});
  return found;
}

json Inspection::to_json() const {
  json all = {
      {"format", format}, {"importable", importable()}, {"problems", problems}, {"tensors", json::array()}};
  if (architecture) all["architecture"] = *architecture;
  if (tokenizer) all["tokenizer"] = *tokenizer;
  if (model) all["model"] = describe_model(*model);
  if (parameters) all["parameters"] = *parameters;
  for (const Tensor& one : tensors)
    all["tensors"].push_back({{"name", one.name}, {"shape", one.shape}, {"stored", one.stored}});
  return all;
}

std::vector<std::vector<float>> inspect_logits(const fs::path& path, const std::vector<int64_t>& ids) {
  const torch::Tensor logits = causal_logits(*open_decoder(path), ids).contiguous();
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const float* begin = logits.const_data_ptr<float>() + row * logits.size(1);
    rows.emplace_back(begin, begin + logits.size(1));
  }
  return rows;
}

ExportResult export_model(const ExportOptions& options) {
  check_destination(options.destination);
  const Checkpoint checkpoint(options.checkpoint);
  auto decoder = checkpoint.make_decoder();
  const bool gguf = options.format == "gguf";
  if (gguf && (decoder->config().restarts_positions() || decoder->config().embedding_shortcut)) {
    throw UserError(fmt::format("{}: llama.cpp has neither model.target_positions=restart nor "
                                "model.embedding_shortcut, which this model needs",
                                options.checkpoint.string()),
                    "train without them, or export with --format hf");
  }
  if (decoder->config().is_prefix() && gguf && !options.causal) {
    throw UserError(
        fmt::format(
            "{}: this is a prefix model; llama.cpp would run it as a causal model and translate worse",
            options.checkpoint.string()),
        "train with model.attention=causal, or export with --causal and measure the loss in quality");
  }
  const Tokenizer tokenizer = checkpoint.tokenizer();
  ModelConfig config = decoder->config();
  if (options.causal) config.attention = AttentionKind::causal;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < std::min<int64_t>(16, config.context_length); ++i)
    ids.push_back((i * 37 + 5) % config.vocabulary);
  const torch::Tensor expected = causal_logits(*decoder, ids);
  if (options.type == (gguf ? "BF16" : "Q8_0"))
    throw UserError(fmt::format("--type {} is not available for {}", options.type,
                                gguf ? "--format gguf" : "--format hf"),
                    gguf ? "available: F32, F16, Q8_0" : "available: F32, F16, BF16");
  if (gguf) {
    const BlockType* type = find_block_type(options.type);
    if (!has_gguf_form(config))
      throw UserError("only Llama, Qwen and Gemma 3 models can be exported to GGUF",
                      "--format hf supports every model");
    check_gguf_tokenizer(tokenizer, options.skip_normalization);
    fs::create_directories(fs::absolute(options.destination).parent_path());
    write_gguf(options.destination, gguf_metadata(config, tokenizer, options.destination.stem().string()),
               gguf_tensors(*decoder), *type);
  } else {
    fs::create_directories(fs::absolute(options.destination).parent_path());
    CheckpointContent content = content_of(*decoder, tokenizer.serialized());
    content.config = hf_config(config);
    if (options.type != "F32") {
      const auto stored = options.type == "BF16" ? torch::kBFloat16 : torch::kFloat16;
      for (auto& [name, tensor] : content.weights) tensor = tensor.to(stored);
      content.config["torch_dtype"] = options.type == "BF16" ? "bfloat16" : "float16";
    }
    content.readme = model_card(config, tokenizer);
    write_checkpoint(fs::absolute(options.destination), content);
  }
  const ImportSource written = open_import_source(options.destination);
  if (const auto text = different_ids(tokenizer, written)) {
    fs::remove_all(options.destination);
    throw std::runtime_error(fmt::format(
        "the exported model was removed: its tokenizer gives other ids for \"{}\" when read back", *text));
  }
  const torch::Tensor found = causal_logits(*load_decoder(written), ids);
  const double difference = (found - expected).abs().max().item<double>();
  const double allowed = options.type != "F32" ? 1.0 : 1e-4;
  if (!(difference < allowed)) {
    fs::remove_all(options.destination);
    throw std::runtime_error(
        fmt::format("the exported model was removed: its logits differ by {} when read back, allowed {}",
                    difference, allowed));
  }
  return {options.format, difference, decoder->parameter_count()};
}

json ExportResult::to_json() const {
  return {
      {"format", format}, {"largest_logit_difference", largest_logit_difference}, {"parameters", parameters}};
}

}  // namespace calque
