#include "calque/convert/import.h"

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/convert/checkpoint.h"
#include "calque/convert/formats.h"
#include "calque/convert/gguf.h"
#include "calque/convert/hf_names.h"
#include "calque/convert/import_source.h"
#include "calque/data/batch.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::shared_ptr<Decoder> open_decoder(const fs::path& path) {
  // Our own checkpoints have a manifest, by which damage is noticed.
  if (fs::exists(path / "manifest.json")) return Checkpoint(path).make_decoder();
  return load_decoder(open_import_source(path));
}

torch::Tensor causal_logits(const Decoder& decoder, const std::vector<int64_t>& ids) {
  const torch::NoGradGuard no_gradients;
  const auto count = static_cast<int64_t>(ids.size());
  if (count == 0) throw UserError("no ids were given");
  if (count > decoder.config().max_positions)
    throw UserError(
        fmt::format("{} ids, but the model has {} positions", count, decoder.config().max_positions));
  for (const int64_t id : ids) {
    if (id < 0 || id >= decoder.config().vocabulary)
      throw UserError(fmt::format("{} is no id of a vocabulary of {}", id, decoder.config().vocabulary));
  }
  Layout layout;
  layout.offsets = layout.query_offsets = {0, count};
  layout.prefix_ends = {0};
  layout.positions = layout.query_rows = torch::arange(count, torch::kInt64);
  return decoder.logits(index_tensor(ids), layout);
}

// Every sentence of a corpus, both sides.
LinesOfText lines_of(const Corpus& corpus) {
  struct State {
    Corpus corpus;
    size_t part = 0;
    std::unique_ptr<PairReader> reader;
    SentencePair pair;
    bool target_next = false;
  };
  auto state = std::make_shared<State>();
  state->corpus = corpus;
  return [state](std::string& line) {
    if (state->target_next) {
      line = state->pair.target;
      state->target_next = false;
      return true;
    }
    while (state->part < state->corpus.size()) {
      if (!state->reader) state->reader = std::make_unique<PairReader>(state->corpus[state->part]);
      if (state->reader->next(state->pair)) {
        const bool is_text = state->pair.source.empty();
        line = is_text ? state->pair.target : state->pair.source;
        state->target_next = !is_text;
        return true;
      }
      state->reader.reset();
      ++state->part;
    }
    return false;
  };
}

void check_destination(const fs::path& destination) {
  if (fs::exists(destination))
    throw UserError(fmt::format("{}: exists already", destination.string()),
                    "name another, or remove it first");
}

CheckpointContent content_of(const Decoder& decoder, const std::string& tokenizer) {
  CheckpointContent content;
  for (const auto& [name, view] : hf_views(decoder)) content.weights.emplace_back(name, view.contiguous());
  content.config = hf_config(decoder.config());
  content.tokenizer = tokenizer;
  if (tokenizer.starts_with('{')) content.tokenizer_file = "tokenizer.json";
  return content;
}

}  // namespace

json import_model(const ImportOptions& options) {
  check_destination(options.destination);
  const ImportSource source = open_import_source(options.source, options.tokenizer);
  std::shared_ptr<Decoder> decoder = load_decoder(source);
  json told = {
      {"format", source.format}, {"architecture", source.architecture}, {"tokenizer", source.tokenizer_kind}};
  std::string tokenizer = source.tokenizer.value_or("");
  if (!options.prune_to.empty()) {
    if (tokenizer.empty())
      throw UserError("there is no tokenizer, so there are no pieces to prune", "--tokenizer FILE");
    const PrunedVocabulary pruned = prune_vocabulary(tokenizer, lines_of(options.prune_to));
    told["pieces_before"] = decoder->config().vocabulary;
    told["parameters_before"] = decoder->parameter_count();
    decoder = keep_rows(*decoder, pruned.kept);
    tokenizer = pruned.tokenizer;
  }
  if (!tokenizer.empty()) {
    // The table of embeddings may be larger than the vocabulary; nothing points there.
    const int32_t pieces = Tokenizer::from_bytes(tokenizer, "tokenizer").size();
    if (pieces < decoder->config().vocabulary) {
      std::vector<int64_t> kept(static_cast<size_t>(pieces));
      for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int64_t>(i);
      decoder = keep_rows(*decoder, kept);
    }
  }
  for (const auto& parameter : decoder->parameters()) {
    if (!parameter.isfinite().all().item<bool>())
      throw UserError(fmt::format("{}: its weights are not all finite numbers", options.source.string()));
  }
  fs::create_directories(fs::absolute(options.destination).parent_path());
  write_checkpoint(fs::absolute(options.destination), content_of(*decoder, tokenizer));
  told["parameters"] = decoder->parameter_count();
  told["pieces"] = decoder->config().vocabulary;
  told["model"] = describe_model(decoder->config());
  return told;
}

json inspect_model(const fs::path& path) {
  json told;
  if (fs::is_regular_file(path) && !is_gguf(path) && !is_llama2c(path) &&
      path.extension() == ".safetensors") {
    const Safetensors file(path);
    told = {{"format", "safetensors file"},
            {"importable", false},
            {"problems",
             {"a safetensors file alone does not say what model it is; its folder, with config.json, does"}}};
    for (const auto& [name, entry] : file.entries())
      told["tensors"].push_back(
          {{"name", name}, {"shape", entry.shape}, {"type", c10::toString(entry.type)}});
    return told;
  }
  const ImportSource source = open_import_source(path);
  told = {
      {"format", source.format}, {"architecture", source.architecture}, {"tokenizer", source.tokenizer_kind}};
  std::vector<std::string> problems = source.problems;
  if (problems.empty()) {
    told["model"] = describe_model(source.config);
    // The names and shapes that the model would need, without making it.
    int64_t parameters = 0;
    for (const auto& [name, tensor] : source.tensors) {
      int64_t count = 1;
      for (const int64_t size : tensor.shape) count *= size;
      parameters += count;
      if (!tensor.read) problems.push_back(name.substr(name.find(' ') + 1) + " is not part of this model");
    }
    told["parameters"] = parameters;
  }
  told["importable"] = problems.empty();
  told["problems"] = problems;
  told["tensors"] = json::array();
  for (const auto& [name, tensor] : source.tensors)
    told["tensors"].push_back({{"name", name}, {"shape", tensor.shape}, {"stored", tensor.stored_as}});
  return told;
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

json export_model(const ExportOptions& options) {
  check_destination(options.destination);
  const Checkpoint checkpoint(options.checkpoint);
  auto decoder = checkpoint.make_decoder();
  if (decoder->config().attention == AttentionKind::prefix && !options.causal) {
    throw UserError(
        fmt::format("{}: a prefix model, which {} would run as a causal one, and translate worse",
                    options.checkpoint.string(), options.format == "gguf" ? "llama.cpp" : "transformers"),
        "train with model.attention=causal for this, or export with --causal and measure what it costs");
  }
  const Tokenizer tokenizer = checkpoint.tokenizer();
  ModelConfig config = decoder->config();
  config.attention = AttentionKind::causal;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < std::min<int64_t>(16, config.max_positions); ++i)
    ids.push_back((i * 37 + 5) % config.vocabulary);
  const torch::Tensor expected = causal_logits(*decoder, ids);
  const bool gguf = options.format == "gguf";
  if (options.type == (gguf ? "BF16" : "Q8_0"))
    throw UserError(
        fmt::format("--type {} is not written to {}", options.type, gguf ? "GGUF" : "Hugging Face's format"));
  if (gguf) {
    const BlockType* type = find_block_type(options.type);
    if (!has_gguf_form(config))
      throw UserError("only models of the kinds of Llama, Qwen and Gemma 3 can be exported to GGUF",
                      "--format hf takes every model");
    write_gguf(options.destination, gguf_metadata(config, tokenizer, options.destination.stem().string()),
               gguf_tensors(*decoder), *type);
  } else {
    fs::create_directories(fs::absolute(options.destination).parent_path());
    CheckpointContent content = content_of(*decoder, tokenizer.serialized());
    // Attention is told as it is: what we read again is what it was, and others do not look at it.
    content.config = hf_config(decoder->config());
    if (options.type != "F32") {
      const auto stored = options.type == "BF16" ? torch::kBFloat16 : torch::kFloat16;
      for (auto& [name, tensor] : content.weights) tensor = tensor.to(stored);
      content.config["torch_dtype"] = options.type == "BF16" ? "bfloat16" : "float16";
    }
    write_checkpoint(fs::absolute(options.destination), content);
  }
  const torch::Tensor found = causal_logits(*load_decoder(open_import_source(options.destination)), ids);
  const double difference = (found - expected).abs().max().item<double>();
  const double allowed = options.type != "F32" ? 1.0 : 1e-4;
  if (!(difference < allowed)) {
    fs::remove_all(options.destination);
    throw std::runtime_error(
        fmt::format("what was written does not read back the same: logits differ by {}", difference));
  }
  return {{"format", options.format},
          {"largest_logit_difference", difference},
          {"parameters", decoder->parameter_count()}};
}

}  // namespace calque
