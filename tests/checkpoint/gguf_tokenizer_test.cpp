#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/gguf.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/import.h"
#include "calque/checkpoint/import_source.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/data/tokenizer.h"
#include "temporary_folder.h"
#include "tiny_model.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const fs::path tokenizer_folder = source_folder() / "tests/golden/tokenizer";

// Exports a tiny causal model with this tokenizer to GGUF and reads the file back; throws what export throws.
ImportSource round_trip(const TemporaryFolder& folder, const std::string& tokenizer,
                        bool skip_normalization) {
  const ModelConfig config = [&] {
    ModelConfig tiny = tiny_config(Tokenizer::from_bytes(tokenizer, "t").size());
    tiny.attention = AttentionKind::causal;
    return tiny;
  }();
  const auto decoder = make_decoder(config);
  CheckpointContent content;
  for (const auto& [name, view] : weight_views(*decoder))
    content.weights.emplace_back(name, view.contiguous());
  content.config = hf_config(config);
  content.tokenizer = tokenizer;
  if (tokenizer.starts_with('{')) content.tokenizer_file = "tokenizer.json";
  fs::remove_all(folder / "own");
  fs::remove(folder / "out.gguf");
  write_checkpoint(folder / "own", content);
  ExportOptions options;
  options.checkpoint = folder / "own";
  options.destination = folder / "out.gguf";
  options.format = "gguf";
  options.skip_normalization = skip_normalization;
  export_model(options);
  return open_import_source(options.destination);
}

std::string why_refused(const TemporaryFolder& folder, const std::string& tokenizer) {
  try {
    round_trip(folder, tokenizer, false);
  } catch (const UserError& error) {
    EXPECT_FALSE(fs::exists(folder / "out.gguf"));
    return error.what();
  }
  return "accepted";
}

json byte_level() {
  json file = json::parse(read_file(tokenizer_folder / "byte-level.json"));
  file.erase("ids");
  return file;
}

json split_by(const std::string& regex) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}},
            {{"type", "ByteLevel"},
             {"add_prefix_space", false},
             {"trim_offsets", false},
             {"use_regex", false}}}}};
}

// Regular expressions as in the tokenizer.json of Llama 3 and of Qwen 2.
const std::string llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

TEST(GgufTokenizer, EveryPreTokenizerThatLlamaCppNamesKeepsItsIds) {
  const TemporaryFolder folder;
  json digits = json::parse(read_file(tokenizer_folder / "byte-level-digits.json"))["pre_tokenizer"];
  const std::pair<std::string, json> cases[] = {{"gpt-2", byte_level()["pre_tokenizer"]},
                                                {"smollm", digits},
                                                {"llama-bpe", split_by(llama3)},
                                                {"qwen2", split_by(qwen2)}};
  for (const auto& [name, pre_tokenizer] : cases) {
    json file = byte_level();
    file["pre_tokenizer"] = pre_tokenizer;
    const Tokenizer before = Tokenizer::from_bytes(file.dump(), "before");
    const ImportSource source = round_trip(folder, file.dump(), false);
    const Tokenizer after = Tokenizer::from_bytes(source.tokenizer.value(), "after");
    const json metadata = Gguf(folder / "out.gguf").metadata();
    EXPECT_EQ(metadata["tokenizer.ggml.pre"], name);
    constexpr int unknown = 2, control = 3;  // llama.cpp's numbers
    for (int32_t id = 0; id < before.size(); ++id) {
      const int type = metadata["tokenizer.ggml.token_type"][static_cast<size_t>(id)];
      EXPECT_EQ(type == control, before.is_control(id) && type != unknown) << before.piece(id);
    }
    EXPECT_EQ(metadata["tokenizer.ggml.token_type"][static_cast<size_t>(before.end_id())], control);
    EXPECT_EQ(metadata["tokenizer.ggml.add_bos_token"], true);
    EXPECT_EQ(metadata["tokenizer.ggml.add_eos_token"], false);
    for (const char* text : {"12345 été", "DON'T 'll", "a\n\n b", "x  y", "(2+3)\r\n"})
      EXPECT_EQ(after.encode(text), before.encode(text)) << name << ": " << text;
  }
}

TEST(GgufTokenizer, WhatLlamaCppWouldTokeniseDifferentlyIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(why_refused(folder, read_file(tokenizer_folder / "bpe.model")),
              HasSubstr("normalises text to NFKC"));
  EXPECT_THAT(why_refused(folder, read_file(tokenizer_folder / "unigram.model")), HasSubstr("unigram"));
  json file = byte_level();
  file["pre_tokenizer"] = split_by(R"(\p{L}+|\s+)");
  EXPECT_THAT(why_refused(folder, file.dump()), HasSubstr("cannot tell which pre-tokenizer"));
  file = byte_level();
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(why_refused(folder, file.dump()), HasSubstr("normalises text to NFC"));
  EXPECT_EQ(round_trip(folder, file.dump(), true).problems.size(), 0U);
  // Text without an NFKC tokenizer's normalisation keeps its ids.
  const std::string bpe = read_file(tokenizer_folder / "bpe.model");
  const ImportSource source = round_trip(folder, bpe, true);
  EXPECT_EQ(Tokenizer::from_bytes(*source.tokenizer, "after").encode("Où est le chat ?"),
            Tokenizer::from_bytes(bpe, "before").encode("Où est le chat ?"));
}

}  // namespace calque
