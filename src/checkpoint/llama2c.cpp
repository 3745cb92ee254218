// llama2.c's .bin files (a header, then all weights in a fixed order) and its tokenizer.bin.
#include "calque/base/byte_reader.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/checkpoint/formats.h"
#include "calque/data/sentence_piece_file.h"

namespace calque {
namespace {

struct Llama2cHeader {
  int64_t width, inner, layers, heads, kv_heads, vocabulary, positions;
  bool shared;
  bool version_1;
  uint64_t begin;  // offset of the weights
};

constexpr uint32_t version_1_magic = 0x616b3432;

std::optional<Llama2cHeader> read_llama2c_header(std::string_view bytes) {
  if (bytes.size() < 256) return std::nullopt;
  ByteReader reader(bytes, "");
  const bool version_1 = reader.value<uint32_t>() == version_1_magic;
  reader = ByteReader(bytes, "");
  if (version_1 && (reader.value<uint32_t>(), reader.value<int32_t>() != 1)) return std::nullopt;
  int64_t numbers[7];
  for (int64_t& number : numbers) number = reader.value<int32_t>();
  Llama2cHeader h{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
                  numbers[5], numbers[6], true,       version_1,  version_1 ? 256U : 28U};
  h.shared = version_1 ? reader.value<uint8_t>() != 0 : h.vocabulary > 0;
  h.vocabulary = std::abs(h.vocabulary);
  for (const int64_t number : {h.width, h.inner, h.layers, h.heads, h.kv_heads, h.vocabulary, h.positions}) {
    if (number < 1 || number > 10'000'000) return std::nullopt;
  }
  if (h.width % h.heads != 0 || h.heads % h.kv_heads != 0 || (h.width / h.heads) % 2 != 0 ||
      h.layers > 10'000 || h.width > 1'000'000)
    return std::nullopt;
  return h;
}

// A group of tensors in the file: their name, how many there are (layers or 1), and the shape of each.
struct Llama2cPart {
  const char* name;
  int64_t count;
  std::vector<int64_t> shape;
};

std::vector<Llama2cPart> parts_of_file(const Llama2cHeader& h) {
  const int64_t kv = h.width / h.heads * h.kv_heads, table = h.positions * (h.width / h.heads) / 2;
  const Llama2cPart embedding{"model.embed_tokens.weight", 1, {h.vocabulary, h.width}};
  const Llama2cPart attention_norm{"input_layernorm.weight", h.layers, {h.width}};
  const Llama2cPart inner_norm{"post_attention_layernorm.weight", h.layers, {h.width}};
  const Llama2cPart norm{"model.norm.weight", 1, {h.width}};
  const std::vector<Llama2cPart> attention = {{"self_attn.q_proj.weight", h.layers, {h.width, h.width}},
                                              {"self_attn.k_proj.weight", h.layers, {kv, h.width}},
                                              {"self_attn.v_proj.weight", h.layers, {kv, h.width}},
                                              {"self_attn.o_proj.weight", h.layers, {h.width, h.width}}};
  const std::vector<Llama2cPart> inner = {{"mlp.gate_proj.weight", h.layers, {h.inner, h.width}},
                                          {"mlp.down_proj.weight", h.layers, {h.width, h.inner}},
                                          {"mlp.up_proj.weight", h.layers, {h.inner, h.width}}};
  std::vector<Llama2cPart> parts;
  const auto add = [&](const std::vector<Llama2cPart>& more) {
    parts.insert(parts.end(), more.begin(), more.end());
  };
  if (h.version_1) {
    add({attention_norm, inner_norm, norm, embedding});
    add(attention);
    add(inner);
  } else {
    add({embedding, attention_norm});
    add(attention);
    add({inner_norm});
    add(inner);
    add({norm, {nullptr, 2, {table}}});  // RoPE cosines and sines; not read, because they can be computed
  }
  if (!h.shared) add({{"lm_head.weight", 1, {h.vocabulary, h.width}}});
  return parts;
}

uint64_t count_values(const Llama2cPart& part) {
  uint64_t count = static_cast<uint64_t>(part.count);
  for (const int64_t size : part.shape) count *= static_cast<uint64_t>(size);
  return count;
}

bool has_expected_size(const Llama2cHeader& h, uint64_t bytes) {
  __extension__ unsigned __int128 expected = h.begin;
  for (const Llama2cPart& part : parts_of_file(h)) {
    __extension__ unsigned __int128 numbers = static_cast<uint64_t>(part.count);
    for (const int64_t size : part.shape) numbers *= static_cast<uint64_t>(size);
    expected += numbers * sizeof(float);
  }
  return expected == bytes;
}

}  // namespace

torch::Tensor interleaved_to_half_split(const torch::Tensor& rows, int64_t heads) {
  return rows.reshape({heads, rows.size(0) / heads / 2, 2, -1}).transpose(1, 2).reshape(rows.sizes());
}

torch::Tensor half_split_to_interleaved(const torch::Tensor& rows, int64_t heads) {
  return rows.reshape({heads, 2, rows.size(0) / heads / 2, -1}).transpose(1, 2).reshape(rows.sizes());
}

bool is_llama2c(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto header = read_llama2c_header(file.bytes());
  return header && has_expected_size(*header, file.size());
}

ImportSource open_llama2c(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  const auto header = read_llama2c_header(file->bytes());
  if (!header || !has_expected_size(*header, file->size()))
    throw UserError(fmt::format("{}: not a valid llama2.c file", path.string()));
  const Llama2cHeader& h = *header;
  ImportSource source;
  source.format = fmt::format("llama2.c file, version {}", h.version_1 ? 1 : 0);
  source.architecture = "llama";
  ModelConfig& c = source.config;
  c.layers = h.layers;
  c.hidden_size = h.width;
  c.heads = h.heads;
  c.kv_heads = h.kv_heads;
  c.mlp_size = h.inner;
  c.vocabulary = h.vocabulary;
  c.context_length = h.positions;
  c.tied_embeddings = h.shared;
  c.attention = AttentionKind::causal;
  uint64_t at = h.begin;
  for (const Llama2cPart& part : parts_of_file(h)) {
    const uint64_t bytes = count_values(part) / static_cast<uint64_t>(part.count) * sizeof(float);
    for (int64_t layer = 0; layer < part.count; ++layer, at += bytes) {
      if (part.name == nullptr) continue;
      const std::string own = part.name;
      const std::string name = own.starts_with("model.") || own.starts_with("lm_head")
                                   ? own
                                   : fmt::format("model.layers.{}.{}", layer, own);
      // llama2.c's RoPE is interleaved.
      const int64_t rope_heads = own.find("q_proj") != std::string::npos   ? h.heads
                                 : own.find("k_proj") != std::string::npos ? h.kv_heads
                                                                           : 0;
      source.tensors[name] = {part.shape, own + ", F32", [file, at, bytes, rope_heads, shape = part.shape] {
                                const torch::Tensor values = torch::empty(shape, torch::kFloat32);
                                std::memcpy(values.mutable_data_ptr(), file->data() + at, bytes);
                                return rope_heads > 0 ? interleaved_to_half_split(values, rope_heads)
                                                      : values;
                              }};
    }
  }
  for (const char* name : {"tokenizer.model", "tokenizer.bin", "tok512.bin"}) {
    const auto beside = path.parent_path() / name;
    if (!std::filesystem::exists(beside)) continue;
    source.tokenizer = convert_tokenizer(beside, 1, 2);
    source.tokenizer_kind = std::string("SentencePiece, from ") + name;
    break;
  }
  return source;
}

// tokenizer.bin: the length of the longest piece, then the score, length and bytes of each piece.
std::string llama2c_tokenizer(std::string_view bytes, const std::string& name) {
  ByteReader reader(bytes, name + ": not a valid llama2.c tokenizer");
  reader.value<int32_t>();
  SentencePieceFile file;
  while (reader.left() > 0) {
    SentencePiece piece;
    piece.score = reader.value<float>();
    const auto size = reader.value<int32_t>();
    if (size < 0 || size > 4096) reader.fail(fmt::format("piece length {}, expected 0 to 4096", size));
    const std::string_view text = reader.take(static_cast<uint64_t>(size));
    for (const char c : text) piece.text += c == ' ' ? std::string("\xE2\x96\x81") : std::string(1, c);
    const size_t id = file.pieces.size();
    if (id > 10'000'000) reader.fail("expected at most 10,000,000 pieces");
    if (id < 3) {
      constexpr const char* names[] = {"<unk>", "<s>", "</s>"};
      piece.text = names[id];
      piece.kind = id == 0 ? SentencePiece::Kind::unknown : SentencePiece::Kind::control;
    } else if (piece.text.size() == 6 && piece.text.starts_with("<0x") && piece.text.ends_with('>')) {
      piece.kind = SentencePiece::Kind::byte;
    }
    file.pieces.push_back(std::move(piece));
  }
  if (file.pieces.size() < 259)
    reader.fail(fmt::format("expected at least 259 pieces, found {}", file.pieces.size()));
  return file.serialize();
}

}  // namespace calque
