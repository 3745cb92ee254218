// GGUF files as import sources: converts llama.cpp's names and layouts to Hugging Face's.
#include <cmath>
#include <set>
#include <span>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/gguf.h"
#include "calque/data/sentence_piece_file.h"
#include "calque/data/tokenizer.h"
#include "gguf_names.h"
#include "gguf_tokenizer.h"

namespace calque {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : name_(path.string()), gguf_(std::make_shared<const Gguf>(path)) {}

  ImportSource open() {
    source_.format = "GGUF file";
    source_.architecture = text("general.architecture", "?");
    std::string known;
    for (const GgufNames& names : gguf_architectures) {
      known += (known.empty() ? "" : ", ") + std::string(names.name);
      if (source_.architecture != names.name) continue;
      apply_architecture(source_.config, names.architecture);
      read_sizes();
      names.architecture == Architecture::gpt2 ? read_gpt2() : read_rope_model(names.architecture);
      add_all(names);
      read_tokenizer();
      return std::move(source_);
    }
    source_.problems.push_back(fmt::format("architecture \"{}\" is not supported; supported: {}",
                                           shorten(source_.architecture, 40), known));
    return std::move(source_);
  }

 private:
  std::string text(const std::string& key, const std::string& default_value) const {
    const json& all = gguf_->metadata();
    return all.contains(key) && all[key].is_string() ? all[key].get<std::string>() : default_value;
  }
  double number(const std::string& key, double default_value) const {
    const json& all = gguf_->metadata();
    return all.contains(key) && all[key].is_number() ? all[key].get<double>() : default_value;
  }
  int64_t count(const std::string& key) const {
    const double value = number(source_.architecture + "." + key, -1);
    if (value < 1 || value > 100'000'000 || value != std::floor(value))
      throw UserError(
          fmt::format("{}: {}.{}: expected a positive integer", name_, source_.architecture, key));
    return static_cast<int64_t>(value);
  }

  void add(const std::string& gguf_name, const std::string& hf_name,
           WeightTransform transform = WeightTransform::none) {
    const auto found = gguf_->entries().find(gguf_name);
    if (found == gguf_->entries().end()) return;
    std::vector<int64_t> shape = found->second.shape;
    if (transform == WeightTransform::transpose && shape.size() == 2) std::swap(shape[0], shape[1]);
    if (found->second.type == nullptr) {
      source_.problems.push_back(fmt::format("{} has ggml type {}, which is not supported",
                                             shorten(gguf_name, 80), found->second.type_number));
    }
    const std::string type = found->second.type != nullptr
                                 ? found->second.type->name
                                 : fmt::format("type {}", found->second.type_number);
    const int64_t heads = transform == WeightTransform::query ? source_.config.heads
                          : transform == WeightTransform::key ? source_.config.kv_head_count()
                                                              : 0;
    if (heads > 0 && (shape.size() != 2 || shape[0] % (2 * heads) != 0))
      throw UserError(
          fmt::format("{}: {}: its rows cannot be divided among {} heads", name_, gguf_name, heads));
    source_.tensors[hf_name] = {shape, gguf_name + ", " + type, [gguf = gguf_, gguf_name, transform, heads] {
                                  torch::Tensor value = gguf->tensor(gguf_name);
                                  if (transform == WeightTransform::transpose) value = value.t();
                                  if (transform == WeightTransform::add_one) value = value - 1;
                                  return heads > 0 ? interleaved_to_half_split(value, heads) : value;
                                }};
    used_.insert(gguf_name);
  }

  void add_all(const GgufNames& names) {
    for (int64_t layer = 0; layer < source_.config.layers; ++layer) {
      for (const GgufName& one : names.block)
        add(fmt::format("blk.{}.{}", layer, one.gguf_name),
            fmt::format("{}{}.{}", names.layer_prefix, layer, one.hf_name), one.transform);
    }
    for (const GgufName& one : names.rest) add(one.gguf_name, one.hf_name, one.transform);
    for (const auto& [name, entry] : gguf_->entries()) {
      if (!used_.contains(name) && name != "rope_freqs.weight" && name != "output.weight")
        source_.tensors["(unknown) " + name] = {entry.shape, name, {}};
    }
  }

  void read_sizes() {
    ModelConfig& c = source_.config;
    c.layers = count("block_count");
    if (c.layers > static_cast<int64_t>(gguf_->entries().size()))
      throw UserError(fmt::format("{}: block_count gives {} layers, but only {} tensors were found", name_,
                                  c.layers, gguf_->entries().size()));
    c.hidden_size = count("embedding_length");
    c.heads = count("attention.head_count");
    c.mlp_size = count("feed_forward_length");
    c.context_length = count("context_length");
    c.attention = AttentionKind::causal;
    const auto embedding = gguf_->entries().find("token_embd.weight");
    if (embedding == gguf_->entries().end() || embedding->second.shape.size() != 2)
      throw UserError(fmt::format("{}: token_embd.weight is missing or is not a matrix", name_));
    c.vocabulary = embedding->second.shape[0];
  }

  void read_rope_model(Architecture architecture) {
    ModelConfig& c = source_.config;
    const std::string of = source_.architecture + ".";
    c.kv_heads = static_cast<int64_t>(number(of + "attention.head_count_kv", static_cast<double>(c.heads)));
    c.norm_epsilon = number(of + "attention.layer_norm_rms_epsilon", 1e-5);
    c.rope_theta = number(of + "rope.freq_base", 10000);
    const auto head = static_cast<int64_t>(number(of + "attention.key_length", 0));
    c.head_size = head > 0 && head * c.heads != c.hidden_size ? head : 0;
    const auto size = static_cast<double>(head > 0 ? head : c.hidden_size / std::max<int64_t>(c.heads, 1));
    for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
      if (const double found = number(of + key, size); found != size)
        source_.problems.push_back(
            fmt::format("{}{} {} is not supported, only the head size, {}", of, key, found, size));
    }
    c.tied_embeddings = !gguf_->entries().contains("output.weight");
    const std::string scaling = text(of + "rope.scaling.type", "none");
    if (scaling != "none" && number(of + "rope.scaling.factor", 1) != 1)
      source_.problems.push_back("rope scaling (" + shorten(scaling, 20) + ") is not supported");
    if (gguf_->entries().contains("rope_freqs.weight"))
      source_.problems.push_back("rope scaling by rope_freqs.weight is not supported");
    if (architecture != Architecture::gemma3) return;
    c.tied_embeddings = true;
    c.sliding_window = count("attention.sliding_window");
    c.rope_local_theta = number(of + "rope.freq_base_swa", gemma_rope_local_theta);
    if (number(of + "final_logit_softcapping", 0) != 0 || number(of + "attn_logit_softcapping", 0) != 0)
      source_.problems.emplace_back("logit soft-capping is not supported");
  }

  void read_gpt2() {
    ModelConfig& c = source_.config;
    c.norm_epsilon = number("gpt2.attention.layer_norm_epsilon", 1e-5);
  }

  void read_tokenizer() {
    const json& all = gguf_->metadata();
    const std::string kind = text("tokenizer.ggml.model", "none");
    if (kind == "none") return;
    const auto list = [&](const char* key) { return all.value(key, json::array()); };
    const json tokens = list("tokenizer.ggml.tokens");
    const auto begin = static_cast<int64_t>(number("tokenizer.ggml.bos_token_id", -1)),
               end = static_cast<int64_t>(number("tokenizer.ggml.eos_token_id", -1));
    for (const json& token : tokens) {
      if (!token.is_string())
        throw UserError(fmt::format("{}: tokenizer.ggml.tokens: expected strings only", name_));
    }
    if (kind == "llama") {
      source_.tokenizer = sentence_piece(tokens, list("tokenizer.ggml.scores"),
                                         list("tokenizer.ggml.token_type"), begin, end);
      source_.tokenizer_kind = "SentencePiece, from the GGUF metadata";
    } else if (kind == "gpt2") {
      source_.tokenizer =
          byte_level(tokens, list("tokenizer.ggml.merges"), list("tokenizer.ggml.token_type"), begin, end);
      source_.tokenizer_kind = "byte-level BPE, from the GGUF metadata";
    } else {
      source_.problems.push_back(
          fmt::format("tokenizer \"{}\" is not supported; supported: llama, gpt2", shorten(kind, 20)));
    }
  }

  std::string sentence_piece(const json& tokens, const json& scores, const json& types, int64_t begin,
                             int64_t end) const {
    SentencePieceFile file;
    for (size_t i = 0; i < tokens.size(); ++i) {
      SentencePiece piece;
      piece.text = tokens[i].get<std::string>();
      piece.score = i < scores.size() && scores[i].is_number() ? scores[i].get<float>() : 0.0F;
      const int kind = i < types.size() && types[i].is_number_integer() ? types[i].get<int>() : 1;
      if (kind >= 1 && kind <= 6) piece.kind = static_cast<SentencePiece::Kind>(kind);
      if (piece.kind == SentencePiece::Kind::user_defined)
        piece.text = with_replaced(piece.text, " ", space_mark);
      file.pieces.push_back(std::move(piece));
    }
    const int64_t count = static_cast<int64_t>(tokens.size());
    for (const int64_t id : {begin, end}) {
      if (id < 0 || id >= count)
        throw UserError(
            fmt::format("{}: tokenizer.ggml.bos_token_id or eos_token_id is missing or out of range", name_));
    }
    file.begin_id = static_cast<int32_t>(begin);
    file.end_id = static_cast<int32_t>(end);
    const auto unknown = static_cast<int64_t>(number("tokenizer.ggml.unknown_token_id", 0));
    if (unknown < 0 || unknown >= count)
      throw UserError(fmt::format("{}: tokenizer.ggml.unknown_token_id is out of range", name_));
    file.unknown_id = static_cast<int32_t>(unknown);
    file.pieces[static_cast<size_t>(unknown)].kind =
        SentencePiece::Kind::unknown;  // some files mark it as a control piece
    const json& all = gguf_->metadata();
    const auto flag = [&](const char* key, bool default_value) {
      return all.contains(key) && all[key].is_boolean() ? all[key].get<bool>() : default_value;
    };
    file.add_dummy_prefix = flag("tokenizer.ggml.add_space_prefix", true);
    file.remove_extra_whitespaces = flag("tokenizer.ggml.remove_extra_whitespaces", false);
    return file.serialize();
  }

  // The tokenizer as a tokenizer.json, with the pre-tokenizer that `tokenizer.ggml.pre` names.
  std::string byte_level(const json& tokens, const json& merges, const json& types, int64_t begin,
                         int64_t end) {
    const std::string pre = text("tokenizer.ggml.pre", "default");
    json pre_tokenizer = pre_tokenizer_by_name(pre);
    if (pre_tokenizer.is_null()) {
      source_.problems.push_back(fmt::format("pre-tokenizer \"{}\" is not supported; supported: {}",
                                             shorten(pre, 20), known_pre_tokenizers()));
      pre_tokenizer = pre_tokenizer_by_name("gpt-2");
    }
    json vocabulary = json::object(), added = json::array();
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int kind = i < types.size() && types[i].is_number_integer() ? types[i].get<int>() : 1;
      if (kind == 3 || kind == 4) {
        added.push_back({{"id", i},
                         {"content", tokens[i]},
                         {"special", kind == 3},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false}});
      }
      vocabulary[tokens[i].get<std::string>()] = i;
    }
    json file = {
        {"version", "1.0"},
        {"truncation", nullptr},
        {"padding", nullptr},
        {"added_tokens", added},
        {"normalizer", nullptr},
        {"pre_tokenizer", pre_tokenizer},
        {"post_processor", nullptr},
        {"decoder",
         {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
        {"model",
         {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"ignore_merges", pre == "llama-bpe"},  // as llama.cpp does for this name, since Llama 3 does
          {"vocab", vocabulary},
          {"merges", merges}}}};
    set_begin_and_end(file, begin, end);
    return file.dump();
  }

  std::string name_;
  std::shared_ptr<const Gguf> gguf_;
  ImportSource source_;
  std::set<std::string> used_;
};

}  // namespace

ImportSource open_gguf(const std::filesystem::path& file) { return Reader(file).open(); }

}  // namespace calque
