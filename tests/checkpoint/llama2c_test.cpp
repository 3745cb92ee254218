#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/import.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// Writes the golden Llama as a llama2.c file: in its order of weights, with interleaved RoPE.
void write_llama2c(const fs::path& path, bool version_1) {
  const ImportSource source = open_hf_folder(golden_models / "llama-grouped-untied");
  const auto decoder = load_decoder(source);
  std::string bytes;
  const auto put = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto add = [&](const torch::Tensor& given) {
    const torch::Tensor tensor = given.contiguous();
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  };
  if (version_1) {
    put(uint32_t{0x616b3432});
    put(int32_t{1});
  }
  for (const int32_t number : {16, 28, 2, 4, 2, version_1 ? 40 : -40, 32}) put(number);
  if (version_1) {
    put(uint8_t{0});
    bytes.resize(256, '\0');
  }
  const auto layer = [&](const std::string& name) {
    for (int i = 0; i < 2; ++i) {
      torch::Tensor value = source.tensors.at(fmt::format("model.layers.{}.{}.weight", i, name)).read();
      if (name == "self_attn.q_proj") value = half_split_to_interleaved(value, 4);
      if (name == "self_attn.k_proj") value = half_split_to_interleaved(value, 2);
      add(value);
    }
  };
  const auto one = [&](const std::string& name) { add(source.tensors.at(name).read()); };
  if (version_1) {
    layer("input_layernorm");
    layer("post_attention_layernorm");
    one("model.norm.weight");
    one("model.embed_tokens.weight");
  } else {
    one("model.embed_tokens.weight");
    layer("input_layernorm");
  }
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"})
    layer(name);
  if (!version_1) layer("post_attention_layernorm");
  for (const char* name : {"mlp.gate_proj", "mlp.down_proj", "mlp.up_proj"}) layer(name);
  if (!version_1) {
    one("model.norm.weight");
    bytes.append(2 * 32 * 2 * sizeof(float), '\0');  // RoPE tables, which are not read
  }
  one("lm_head.weight");
  std::ofstream(path, std::ios::binary) << bytes;
}

// A version 0 file of zeros with these sizes.
std::string zeros(int32_t width, int32_t inner, int32_t layers, int32_t heads, int32_t kv_heads,
                  int32_t vocabulary, int32_t positions) {
  const int64_t kv = width / heads * kv_heads;
  const int64_t numbers = int64_t{vocabulary} * width +
                          layers * (2 * int64_t{width} + 2 * int64_t{width} * width + 2 * kv * width +
                                    3 * int64_t{width} * inner) +
                          width + positions * (width / heads);
  std::string bytes;
  for (const int32_t number : {width, inner, layers, heads, kv_heads, vocabulary, positions})
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  return bytes + std::string(static_cast<size_t>(numbers) * sizeof(float), '\0');
}

// tokenizer.bin: three special pieces, 256 bytes, and `more`.
std::string bin_tokenizer(const std::vector<std::pair<float, std::string>>& more) {
  std::vector<std::pair<float, std::string>> pieces = {{0, "<unk>"}, {0, "\n<s>\n"}, {0, "\n</s>\n"}};
  for (int i = 0; i < 256; ++i) pieces.emplace_back(0, fmt::format("<0x{:02X}>", i));
  pieces.insert(pieces.end(), more.begin(), more.end());
  std::string bytes(4, '\0');
  bytes[0] = 27;
  for (const auto& [score, text] : pieces) {
    const auto size = static_cast<int32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&score), sizeof score);
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += text;
  }
  return bytes;
}

}  // namespace

TEST(Llama2c, FilesOfBothVersionsGiveTheSameLogits) {
  const TemporaryFolder folder;
  const json golden = parse_file(golden_models / "llama-grouped-untied/logits.json");
  for (const bool version_1 : {false, true}) {
    const fs::path file = folder / (version_1 ? "one.bin" : "zero.bin");
    write_llama2c(file, version_1);
    EXPECT_TRUE(is_llama2c(file));
    EXPECT_LT(worst(inspect_logits(file, golden["ids"].get<std::vector<int64_t>>()), golden["logits"]), 1e-4);
    std::string bytes = read_file(file);
    bytes.pop_back();
    EXPECT_THAT(refusal([&] { open_import_source(folder.write("cut.bin", bytes)); }),
                HasSubstr("not in a known format"));
  }
}

TEST(Llama2c, TheHeaderIsRead) {
  const TemporaryFolder folder;
  const ImportSource source = open_llama2c(folder.write("m.bin", zeros(16, 20, 3, 4, 2, 50, 30)));
  EXPECT_EQ(source.format, "llama2.c file, version 0");
  EXPECT_EQ(source.architecture, "llama");
  EXPECT_EQ(source.config.hidden_size, 16);
  EXPECT_EQ(source.config.mlp_size, 20);
  EXPECT_EQ(source.config.layers, 3);
  EXPECT_EQ(source.config.heads, 4);
  EXPECT_EQ(source.config.kv_heads, 2);
  EXPECT_EQ(source.config.vocabulary, 50);
  EXPECT_EQ(source.config.context_length, 30);
  EXPECT_TRUE(source.config.tied_embeddings);
  EXPECT_EQ(source.config.attention, AttentionKind::causal);
  EXPECT_EQ(source.tensors.size(), 2U + 3 * 9);
  EXPECT_EQ(source.tensors.at("model.layers.2.self_attn.k_proj.weight").stored_as,
            "self_attn.k_proj.weight, F32");
  EXPECT_EQ(source.tokenizer_kind, "none");
}

TEST(Llama2c, SizesThatNoModelHasAreNotOfThisFormat) {
  const TemporaryFolder folder;
  const auto is = [&](const std::string& bytes) { return is_llama2c(folder.write("m.bin", bytes)); };
  const std::string good = zeros(16, 20, 1, 4, 2, 50, 30);
  EXPECT_TRUE(is(good));
  EXPECT_FALSE(is(good + "x"));
  EXPECT_FALSE(is(good.substr(0, 255)));
  EXPECT_FALSE(is(""));
  EXPECT_FALSE(is(zeros(18, 20, 1, 4, 2, 50, 30)));  // heads do not divide the width
  EXPECT_FALSE(is(zeros(16, 20, 1, 4, 3, 50, 30)));  // nor key-value heads the heads
  EXPECT_FALSE(is(zeros(12, 20, 1, 4, 2, 50, 30)));  // RoPE needs an even head
  EXPECT_TRUE(is(zeros(2, 1, 1, 1, 1, 100, 1)));
  for (size_t field = 0; field < 7; ++field) {
    std::string zero = good;
    std::memset(zero.data() + 4 * field, 0, 4);
    EXPECT_FALSE(is(zero)) << field;
  }
  std::string version_2 = good;
  version_2.replace(0, 8, std::string("24ka\x02\0\0\0", 8));
  EXPECT_FALSE(is(version_2));
  EXPECT_THAT(refusal([&] { open_llama2c(folder.write("m.bin", good + "x")); }),
              HasSubstr("not a valid llama2.c file"));
}

TEST(Llama2c, ATokenizerBesideTheModelIsConverted) {
  const TemporaryFolder folder;
  folder.write("tokenizer.bin", bin_tokenizer({{-1, " chat"}, {-2.5, "t"}}));
  const ImportSource source = open_llama2c(folder.write("m.bin", zeros(16, 20, 1, 4, 2, 300, 30)));
  EXPECT_EQ(source.tokenizer_kind, "SentencePiece, from tokenizer.bin");
  const auto pieces = read_sentence_pieces(*source.tokenizer);
  ASSERT_EQ(pieces.size(), 261U);
  EXPECT_EQ(pieces[0].text, "<unk>");
  EXPECT_EQ(pieces[0].kind, SentencePiece::Kind::unknown);
  EXPECT_EQ(pieces[1].text, "<s>");
  EXPECT_EQ(pieces[2].text, "</s>");
  EXPECT_EQ(pieces[2].kind, SentencePiece::Kind::control);
  EXPECT_EQ(pieces[3].kind, SentencePiece::Kind::byte);
  EXPECT_EQ(pieces[258].kind, SentencePiece::Kind::byte);
  EXPECT_EQ(pieces[259].text, "▁chat");
  EXPECT_EQ(pieces[259].kind, SentencePiece::Kind::normal);
  EXPECT_EQ(pieces[260].score, -2.5F);
}

TEST(Llama2c, TokenizersThatCannotBeAreRefused) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& bytes) {
    return refusal([&] { convert_tokenizer(folder.write("t.bin", bytes), 1, 2); });
  };
  const std::string good = bin_tokenizer({});
  EXPECT_EQ(open(good), "accepted");
  EXPECT_THAT(open(good.substr(0, good.size() - 14)), HasSubstr("expected at least 259 pieces, found 258"));
  EXPECT_EQ(open(bin_tokenizer({{0, std::string(4096, 'x')}})), "accepted");
  EXPECT_THAT(open(bin_tokenizer({{0, std::string(4097, 'x')}})), HasSubstr("piece length 4097"));
  EXPECT_EQ(open(bin_tokenizer({{0, ""}})), "accepted");
  std::string negative = bin_tokenizer({{0, ""}});
  std::memset(negative.data() + negative.size() - 4, 0xFF, 4);
  EXPECT_THAT(open(negative), HasSubstr("piece length -1"));
  EXPECT_THAT(open(good + "x"), HasSubstr("ends too early"));
}

}  // namespace calque
