// GGUF files as import sources: llama.cpp's names and layouts turned into Hugging Face's.
#include <cmath>
#include <set>
#include <span>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/convert/formats.h"
#include "calque/convert/gguf.h"
#include "calque/convert/hf_names.h"
#include "calque/data/sentence_piece_file.h"
#include "calque/data/tokenizer.h"

namespace calque {
namespace {

using nlohmann::json;

// One name inside a block: llama.cpp's, Hugging Face's, and what has to be done to its rows.
struct GgufName {
  const char* stored;
  const char* outside;
  enum class Turn { none, query, key, transpose, one_more } turn = Turn::none;
};
using Turn = GgufName::Turn;

constexpr GgufName llama_block[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Turn::query},
    {"attn_k.weight", "self_attn.k_proj.weight", Turn::key},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
// Qwen's heads turn halves, as ours do. Biases are Qwen 2's, head norms Qwen 3's.
constexpr GgufName qwen_block[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
// llama.cpp keeps Gemma's norm weights with the one added.
constexpr GgufName gemma_block[] = {
    {"attn_norm.weight", "input_layernorm.weight", Turn::one_more},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", Turn::one_more},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", Turn::one_more},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", Turn::one_more},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", Turn::one_more},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", Turn::one_more},
};
constexpr GgufName gpt2_block[] = {
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", Turn::transpose},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", Turn::transpose},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", Turn::transpose},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", Turn::transpose},
    {"ffn_down.bias", "mlp.c_proj.bias"},
};
constexpr GgufName llama_rest[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                   {"output_norm.weight", "model.norm.weight"},
                                   {"output.weight", "lm_head.weight"}};
constexpr GgufName gemma_rest[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                   {"output_norm.weight", "model.norm.weight", Turn::one_more}};
constexpr GgufName gpt2_rest[] = {{"token_embd.weight", "transformer.wte.weight"},
                                  {"position_embd.weight", "transformer.wpe.weight"},
                                  {"output_norm.weight", "transformer.ln_f.weight"},
                                  {"output_norm.bias", "transformer.ln_f.bias"}};

// llama.cpp's names for one architecture.
struct GgufNames {
  Architecture architecture;
  const char* name;
  const char* layers;  // what stands before a layer's number in Hugging Face's names
  std::span<const GgufName> block, rest;
};
constexpr GgufNames gguf_architectures[] = {
    {Architecture::llama, "llama", "model.layers.", llama_block, llama_rest},
    {Architecture::qwen2, "qwen2", "model.layers.", qwen_block, llama_rest},
    {Architecture::qwen3, "qwen3", "model.layers.", qwen_block, llama_rest},
    {Architecture::gemma3, "gemma3", "model.layers.", gemma_block, gemma_rest},
    {Architecture::gpt2, "gpt2", "transformer.h.", gpt2_block, gpt2_rest}};

// llama.cpp knows these of Gemma 3 by heart; no file says them.
constexpr int64_t gemma_window_period = 6;
constexpr double gemma_window_rotary_base = 10000;

// llama.cpp writes pieces that users defined with blanks, SentencePiece all of them with this.
constexpr std::string_view blank_mark = "\xE2\x96\x81";  // «▁»

std::string with_replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

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
      read_sizes();
      names.architecture == Architecture::gpt2 ? read_gpt2() : read_rotary_model(names.architecture);
      add_all(names);
      read_tokenizer();
      return std::move(source_);
    }
    source_.problems.push_back(fmt::format("architecture \"{}\" is not supported; these are: {}",
                                           shorten(source_.architecture, 40), known));
    return std::move(source_);
  }

 private:
  std::string text(const std::string& key, const std::string& otherwise) const {
    const json& all = gguf_->metadata();
    return all.contains(key) && all[key].is_string() ? all[key].get<std::string>() : otherwise;
  }
  double number(const std::string& key, double otherwise) const {
    const json& all = gguf_->metadata();
    return all.contains(key) && all[key].is_number() ? all[key].get<double>() : otherwise;
  }
  int64_t count(const std::string& key) const {
    const double value = number(source_.architecture + "." + key, -1);
    if (value < 1 || value > 100'000'000 || value != std::floor(value))
      throw UserError(
          fmt::format("{}: {}.{}: a whole number above 0 wanted", name_, source_.architecture, key));
    return static_cast<int64_t>(value);
  }

  void add(const std::string& stored, const std::string& outside, GgufName::Turn turn = Turn::none) {
    const auto found = gguf_->entries().find(stored);
    if (found == gguf_->entries().end()) return;
    std::vector<int64_t> shape = found->second.shape;
    if (turn == Turn::transpose && shape.size() == 2) std::swap(shape[0], shape[1]);
    const std::string type = found->second.type != nullptr
                                 ? found->second.type->name
                                 : fmt::format("type {}", found->second.type_number);
    const int64_t heads = turn == Turn::query ? source_.config.heads
                          : turn == Turn::key ? source_.config.key_value_head_count()
                                              : 0;
    if (heads > 0 && (shape.size() != 2 || shape[0] % (2 * heads) != 0))
      throw UserError(fmt::format("{}: {} cannot be divided among {} heads", name_, stored, heads));
    source_.tensors[outside] = {shape, stored + ", " + type, [gguf = gguf_, stored, turn, heads] {
                                  torch::Tensor value = gguf->tensor(stored);
                                  if (turn == Turn::transpose) value = value.t();
                                  if (turn == Turn::one_more) value = value - 1;
                                  return heads > 0 ? halves_apart(value, heads) : value;
                                }};
    used_.insert(stored);
  }

  void add_all(const GgufNames& names) {
    for (int64_t layer = 0; layer < source_.config.layers; ++layer) {
      for (const GgufName& one : names.block)
        add(fmt::format("blk.{}.{}", layer, one.stored),
            fmt::format("{}{}.{}", names.layers, layer, one.outside), one.turn);
    }
    for (const GgufName& one : names.rest) add(one.stored, one.outside, one.turn);
    for (const auto& [name, entry] : gguf_->entries()) {
      if (!used_.contains(name) && name != "rope_freqs.weight" && name != "output.weight")
        source_.tensors["(unknown) " + name] = {entry.shape, name, {}};
    }
  }

  void read_sizes() {
    ModelConfig& c = source_.config;
    c.layers = count("block_count");
    if (c.layers > static_cast<int64_t>(gguf_->entries().size()))
      throw UserError(
          fmt::format("{}: {} layers, but only {} tensors", name_, c.layers, gguf_->entries().size()));
    c.width = count("embedding_length");
    c.heads = count("attention.head_count");
    c.feed_forward_width = count("feed_forward_length");
    c.max_positions = count("context_length");
    c.attention = AttentionKind::causal;
    const auto embedding = gguf_->entries().find("token_embd.weight");
    if (embedding == gguf_->entries().end() || embedding->second.shape.size() != 2)
      throw UserError(fmt::format("{}: no token_embd.weight", name_));
    c.vocabulary = embedding->second.shape[0];
  }

  void read_rotary_model(Architecture architecture) {
    ModelConfig& c = source_.config;
    const std::string of = source_.architecture + ".";
    c.key_value_heads =
        static_cast<int64_t>(number(of + "attention.head_count_kv", static_cast<double>(c.heads)));
    c.norm_epsilon = number(of + "attention.layer_norm_rms_epsilon", 1e-5);
    c.rotary_base = number(of + "rope.freq_base", 10000);
    const auto head = static_cast<int64_t>(number(of + "attention.key_length", 0));
    c.head_width = head > 0 && head * c.heads != c.width ? head : 0;
    c.tied = !gguf_->entries().contains("output.weight");
    const std::string scaling = text(of + "rope.scaling.type", "none");
    if (scaling != "none" && number(of + "rope.scaling.factor", 1) != 1)
      source_.problems.push_back("rope scaling (" + shorten(scaling, 20) + ") is not supported");
    if (gguf_->entries().contains("rope_freqs.weight"))
      source_.problems.push_back("rope scaling by rope_freqs.weight is not supported");
    c.qkv_bias = architecture == Architecture::qwen2;
    c.head_norms = architecture == Architecture::qwen3 || architecture == Architecture::gemma3;
    if (architecture != Architecture::gemma3) return;
    c.norm = NormKind::rms_plus_one;
    c.feed_forward = FeedForwardKind::geglu;
    c.outer_norms = c.scaled_embedding = c.tied = true;
    c.window = count("attention.sliding_window");
    c.window_period = gemma_window_period;
    c.window_rotary_base = number(of + "rope.freq_base_swa", gemma_window_rotary_base);
    if (number(of + "final_logit_softcapping", 0) != 0 || number(of + "attn_logit_softcapping", 0) != 0)
      source_.problems.emplace_back("soft caps of logits are not supported");
  }

  void read_gpt2() {
    ModelConfig& c = source_.config;
    c.norm = NormKind::layer;
    c.positions = PositionKind::learned;
    c.feed_forward = FeedForwardKind::gelu;
    c.bias = true;
    c.tied = true;
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
      if (!token.is_string()) throw UserError(fmt::format("{}: a token is no text", name_));
    }
    if (kind == "llama") {
      source_.tokenizer = sentence_piece(tokens, list("tokenizer.ggml.scores"),
                                         list("tokenizer.ggml.token_type"), begin, end);
      source_.tokenizer_kind = "SentencePiece, from its metadata";
    } else if (kind == "gpt2") {
      source_.tokenizer =
          byte_level(tokens, list("tokenizer.ggml.merges"), list("tokenizer.ggml.token_type"), begin, end);
      source_.tokenizer_kind = "byte-level BPE, from its metadata";
    } else {
      source_.problems.push_back(fmt::format("its tokenizer (\"{}\") is not supported", shorten(kind, 20)));
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
        piece.text = with_replaced(piece.text, " ", blank_mark);
      file.pieces.push_back(std::move(piece));
    }
    const int64_t count = static_cast<int64_t>(tokens.size());
    for (const int64_t id : {begin, end}) {
      if (id < 0 || id >= count) throw UserError(fmt::format("{}: its tokenizer has no <s> or </s>", name_));
    }
    file.begin_id = static_cast<int32_t>(begin);
    file.end_id = static_cast<int32_t>(end);
    const auto unknown = static_cast<int64_t>(number("tokenizer.ggml.unknown_token_id", 0));
    if (unknown < 0 || unknown >= count)
      throw UserError(fmt::format("{}: its tokenizer has no <unk>", name_));
    file.unknown_id = static_cast<int32_t>(unknown);
    file.pieces[static_cast<size_t>(unknown)].kind =
        SentencePiece::Kind::unknown;  // some files call it a control piece
    const json& all = gguf_->metadata();
    const auto flag = [&](const char* key, bool otherwise) {
      return all.contains(key) && all[key].is_boolean() ? all[key].get<bool>() : otherwise;
    };
    file.add_dummy_prefix = flag("tokenizer.ggml.add_space_prefix", true);
    file.remove_extra_whitespaces = flag("tokenizer.ggml.remove_extra_whitespaces", false);
    return file.serialize();
  }

  // As a tokenizer.json, with the splits that `tokenizer.ggml.pre` names.
  std::string byte_level(const json& tokens, const json& merges, const json& types, int64_t begin,
                         int64_t end) {
    const std::string pre = text("tokenizer.ggml.pre", "default");
    const json bytes = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
    json splits = bytes;
    if (pre == "smollm") {
      splits = {{"type", "Sequence"},
                {"pretokenizers", json::array({{{"type", "Digits"}, {"individual_digits", true}}, bytes})}};
    } else if (pre != "gpt-2" && pre != "gpt2" && pre != "default") {
      source_.problems.push_back(
          fmt::format("its pre-tokenizer (\"{}\") is not supported", shorten(pre, 20)));
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
        {"pre_tokenizer", splits},
        {"post_processor", nullptr},
        {"decoder",
         {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
        {"model",
         {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
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

namespace {

const GgufNames* names_of(const ModelConfig& config) {
  for (const GgufNames& names : gguf_architectures) {
    if (names.architecture == architecture_of(config)) return &names;
  }
  return nullptr;
}

}  // namespace

bool has_gguf_form(const ModelConfig& c) {
  const Architecture architecture = architecture_of(c);
  // llama.cpp wants GPT-2 without what we would have to leave out, and Gemma as its makers have it.
  return architecture != Architecture::gpt2 && names_of(c) != nullptr && !c.bias &&
         (architecture != Architecture::gemma3 ||
          (c.window_period == gemma_window_period && c.window_rotary_base == gemma_window_rotary_base));
}

// The other way: a decoder's weights under llama.cpp's names and in its layouts.
NamedTensors gguf_tensors(const Decoder& decoder) {
  const ModelConfig& c = decoder.config();
  const GgufNames& names = *names_of(c);
  std::map<std::string, torch::Tensor> views;
  for (const auto& [name, view] : hf_views(decoder)) views[name] = view;
  NamedTensors tensors;
  const auto add = [&](const std::string& stored, const std::string& outside, Turn turn) {
    const auto found = views.find(outside);
    if (found == views.end()) return;
    torch::Tensor value = found->second;
    if (turn == Turn::query || turn == Turn::key)
      value = neighbours_together(value, turn == Turn::query ? c.heads : c.key_value_head_count());
    if (turn == Turn::one_more) value = value + 1;
    tensors.emplace_back(stored, value);
  };
  for (const GgufName& one : names.rest) add(one.stored, one.outside, one.turn);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (const GgufName& one : names.block)
      add(fmt::format("blk.{}.{}", layer, one.stored),
          fmt::format("{}{}.{}", names.layers, layer, one.outside), one.turn);
  }
  return tensors;
}

nlohmann::ordered_json gguf_metadata(const ModelConfig& c, const Tokenizer& tokenizer,
                                     const std::string& name) {
  const std::string architecture = names_of(c)->name, of = architecture + ".";
  nlohmann::ordered_json all = {{"general.architecture", architecture},
                                {"general.name", name},
                                {of + "block_count", c.layers},
                                {of + "context_length", c.max_positions},
                                {of + "embedding_length", c.width},
                                {of + "feed_forward_length", c.feed_forward_width},
                                {of + "attention.head_count", c.heads},
                                {of + "attention.head_count_kv", c.key_value_head_count()},
                                {of + "attention.key_length", c.width_of_head()},
                                {of + "attention.value_length", c.width_of_head()},
                                {of + "rope.dimension_count", c.width_of_head()},
                                {of + "attention.layer_norm_rms_epsilon", c.norm_epsilon},
                                {of + "rope.freq_base", c.rotary_base},
                                {of + "vocab_size", c.vocabulary}};
  if (c.window > 0) all[of + "attention.sliding_window"] = c.window;
  nlohmann::ordered_json tokens = json::array(), scores = json::array(), types = json::array(), merges;
  if (std::string(tokenizer.file_name()) == "tokenizer.json") {
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      tokens.push_back(tokenizer.piece(id));
      types.push_back(id == tokenizer.unknown_id() ? 2 : tokenizer.is_control(id) ? 3 : 1);
    }
    const json file = json::parse(tokenizer.serialized());
    merges = json::array();
    for (const json& merge : file["model"]["merges"])
      merges.push_back(merge.is_array() ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                                        : merge.get<std::string>());
    all["tokenizer.ggml.model"] = "gpt2";
    all["tokenizer.ggml.merges"] = merges;
    all["tokenizer.ggml.pre"] = file["pre_tokenizer"].value("type", "") == "Sequence" ? "smollm" : "gpt-2";
  } else {
    for (const SentencePiece& piece : read_sentence_pieces(tokenizer.serialized())) {
      tokens.push_back(piece.kind == SentencePiece::Kind::user_defined
                           ? with_replaced(piece.text, blank_mark, " ")
                           : piece.text);
      scores.push_back(piece.score);
      types.push_back(static_cast<int>(piece.kind));
    }
    all["tokenizer.ggml.model"] = "llama";
    all["tokenizer.ggml.scores"] = scores;
    all["tokenizer.ggml.unknown_token_id"] = tokenizer.unknown_id();
    const auto ids = tokenizer.encode("a");
    all["tokenizer.ggml.add_space_prefix"] = !ids.empty() && tokenizer.begins_word(ids.front());
    all["tokenizer.ggml.remove_extra_whitespaces"] = tokenizer.encode("a  b") == tokenizer.encode("a b");
  }
  all["tokenizer.ggml.tokens"] = tokens;
  all["tokenizer.ggml.token_type"] = types;
  all["tokenizer.ggml.bos_token_id"] = tokenizer.begin_id();
  all["tokenizer.ggml.eos_token_id"] = tokenizer.end_id();
  return all;
}

}  // namespace calque
