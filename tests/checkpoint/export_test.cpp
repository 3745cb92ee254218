// Models that are written for other programs and read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "calque/checkpoint/gguf.h"
#include "calque/checkpoint/import.h"
#include "calque/checkpoint/import_source.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

}  // namespace

TEST(Export, GgufAndHuggingFaceReadBackTheSame) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  const std::vector<int64_t> ids = {1, 40, 41, 7, 300};
  const auto expected = inspect_logits(own, ids);
  for (const char* type : {"F32", "F16", "Q8_0"}) {
    ExportOptions options;
    options.checkpoint = own;
    options.destination = folder / (std::string(type) + ".gguf");
    options.format = "gguf";
    options.type = type;
    options.skip_normalization = true;
    const json summary = export_model(options).to_json();
    EXPECT_LT(summary["largest_logit_difference"].get<double>(), std::string(type) == "F32" ? 1e-5 : 0.05)
        << type;
    const ImportSource source = open_import_source(options.destination);
    EXPECT_TRUE(source.problems.empty());
    // The tokenizer survives too: the same pieces with the same ids.
    const Tokenizer before = Tokenizer::load(golden_tokenizer),
                    after = Tokenizer::from_bytes(*source.tokenizer, "t");
    for (const char* text : {"Le chat dort.", "Where is the station?", "  deux  blancs", "été 漢字 🙂"})
      EXPECT_EQ(after.encode(text), before.encode(text)) << text;
  }
  ExportOptions hf;
  hf.checkpoint = own;
  hf.destination = folder / "hf";
  EXPECT_LT(export_model(hf).largest_logit_difference, 1e-6);
  EXPECT_THAT(refusal([&] { export_model(hf); }), HasSubstr("already exists"));
}

TEST(Export, QwenAndGemmaSurviveAGgufRoundTrip) {
  for (const char* name : {"qwen2", "qwen3", "gemma3"}) {
    const TemporaryFolder folder;
    ImportOptions import;
    import.source = golden_models / name;
    import.destination = folder / "imported";
    // The golden models have no tokenizer; this one has as many pieces.
    import.tokenizer = folder.write("forty.model", tokenizer_with_40_pieces());
    import_model(import);
    ExportOptions options;
    options.checkpoint = folder / "imported";
    options.destination = folder / "out.gguf";
    options.format = "gguf";
    options.type = "F32";
    export_model(options);
    const json golden = parse_file(golden_models / name / "logits.json");
    EXPECT_LT(worst(inspect_logits(folder / "out.gguf", golden["ids"].get<std::vector<int64_t>>()),
                    golden["logits"]),
              1e-4)
        << name;
    EXPECT_EQ(*inspect_model(folder / "out.gguf").architecture, name);
    // User-defined pieces are still matched before all others after the round trip.
    const auto tokenizer =
        Tokenizer::from_bytes(open_import_source(folder / "out.gguf").tokenizer.value(), "back");
    const std::vector<int32_t> ids = tokenizer.encode("p7   p8");
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 9), 1) << name;
    EXPECT_EQ(ids, Tokenizer::from_bytes(tokenizer_with_40_pieces(), "there").encode("p7   p8"));
    std::vector<int32_t> all(40);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(Tokenizer::from_bytes(tokenizer.pieces().pruned(all), "pruned").encode("p7   p8"), ids);
  }
}

TEST(Export, APrefixModelNeedsTheCausalOption) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.checkpoint = own_checkpoint(folder, AttentionKind::prefix);
  options.destination = folder / "out.gguf";
  options.format = "gguf";
  EXPECT_THAT(refusal([&] { export_model(options); }), HasSubstr("a prefix model"));
  EXPECT_FALSE(fs::exists(options.destination));
  options.causal = true;
  options.skip_normalization = true;
  EXPECT_NO_THROW(export_model(options));
}

TEST(Export, WhatLlamaCppCannotRunIsRefused) {
  const std::string tokenizer = read_file(golden_tokenizer);
  for (const bool restart : {true, false}) {
    const TemporaryFolder folder;
    ModelConfig config = tiny_config(Tokenizer::from_bytes(tokenizer, "t").size());
    config.attention = AttentionKind::causal;
    if (restart) config.target_positions = TargetPositions::restart;
    config.embedding_shortcut = !restart;
    ExportOptions options;
    options.checkpoint = write_own(folder, *make_decoder(config), tokenizer);
    options.destination = folder / "out.gguf";
    options.format = "gguf";
    options.skip_normalization = true;
    EXPECT_THAT(refusal([&] { export_model(options); }), HasSubstr("llama.cpp has neither"));
    EXPECT_FALSE(fs::exists(options.destination));
    options.format = "hf";
    options.destination = folder / "hf";
    export_model(options);
    EXPECT_EQ(parse_file(options.destination / "config.json")["model_type"], "calque");
    const ModelConfig back = Checkpoint(options.destination).config();
    EXPECT_EQ(back.restarts_positions(), restart);
    EXPECT_EQ(back.embedding_shortcut, !restart);
    const std::string card = read_file(options.destination / "README.md");
    EXPECT_EQ(card.find("Positions begin at 0 again") != std::string::npos, restart);
  }
}

// Labelled as a Llama, transformers would run it causally and translate worse, in silence.
TEST(Export, APrefixModelBringsItsOwnClassForTransformers) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.checkpoint = own_checkpoint(folder, AttentionKind::prefix);
  for (const bool causal : {false, true}) {
    options.destination = folder / (causal ? "causal" : "prefix");
    options.causal = causal;
    export_model(options);
    const json config = parse_file(options.destination / "config.json");
    EXPECT_EQ(config["model_type"], causal ? "llama" : "calque");
    EXPECT_EQ(fs::exists(options.destination / "modeling_calque.py"), !causal);
    EXPECT_EQ(Checkpoint(options.destination).config().is_prefix(), !causal);
    EXPECT_EQ(Checkpoint(options.destination).config().architecture, Architecture::llama);
    const bool trusts =
        read_file(options.destination / "README.md").find("trust_remote_code=True") != std::string::npos;
    EXPECT_EQ(trusts, !causal);
    if (causal) continue;
    EXPECT_EQ(config["auto_map"]["AutoModelForCausalLM"], "modeling_calque.CalqueForCausalLM");
    EXPECT_EQ(config["calque"]["separator"],
              json::array({*Tokenizer::load(golden_tokenizer).separator_id()}));
  }
}

TEST(Export, TheWeightsAreStoredInTheTypeThatIsAskedFor) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.checkpoint = own_checkpoint(folder);
  const int64_t parameters = Checkpoint(options.checkpoint).make_decoder()->parameter_count();
  const std::pair<std::string, torch::ScalarType> types[] = {
      {"F32", torch::kFloat32}, {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16}};
  const char* names[] = {"float32", "float16", "bfloat16"};
  for (size_t i = 0; i < 3; ++i) {
    options.type = types[i].first;
    options.destination = folder / "deep" / options.type;
    const ExportResult result = export_model(options);
    EXPECT_EQ(result.parameters, parameters);
    EXPECT_EQ(result.format, "hf");
    EXPECT_EQ(parse_file(options.destination / "config.json")["torch_dtype"], names[i]);
    const Safetensors stored(options.destination / "model.safetensors");
    for (const auto& [name, entry] : stored.entries()) EXPECT_EQ(entry.type, types[i].second) << name;
  }
  EXPECT_EQ((ExportResult{"hf", 0.5, 3}.to_json()),
            (json{{"format", "hf"}, {"largest_logit_difference", 0.5}, {"parameters", 3}}));
  EXPECT_EQ(ExportResult().to_json(), (ExportResult{"", 0, 0}.to_json()));
  EXPECT_EQ(ExportOptions().type, "F32");
  EXPECT_FALSE(ExportOptions().causal || ExportOptions().skip_normalization);
}

TEST(Export, TypesAndModelsThatAFormatDoesNotHaveAreRefused) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.checkpoint = own_checkpoint(folder);
  options.destination = folder / "out";
  options.type = "Q8_0";
  EXPECT_EQ(refusal([&] { export_model(options); }), "--type Q8_0 is not available for --format hf");
  options.format = "gguf";
  options.type = "BF16";
  EXPECT_EQ(refusal([&] { export_model(options); }), "--type BF16 is not available for --format gguf");
  ModelConfig own = tiny_config(40);
  own.architecture = Architecture::calque;
  own.activation = Activation::relu;
  own.attention = AttentionKind::causal;
  options.checkpoint = write_own(folder, *make_decoder(own), tokenizer_with_40_pieces());
  options.type = "F32";
  EXPECT_THAT(refusal([&] { export_model(options); }), HasSubstr("only Llama, Qwen and Gemma 3 models"));
  EXPECT_FALSE(fs::exists(options.destination));
}

TEST(Export, TheModelCardSaysWhatToPrompt) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.checkpoint = own_checkpoint(folder);
  options.destination = folder / "out";
  export_model(options);
  const Tokenizer tokenizer = Tokenizer::load(golden_tokenizer);
  const std::string card = read_file(options.destination / "README.md");
  EXPECT_THAT(card, HasSubstr(fmt::format("    {} <source> {} <translation> {}\n", tokenizer.begin_id(),
                                          *tokenizer.separator_id(), tokenizer.end_id())));
  EXPECT_THAT(card, HasSubstr("Attention is causal."));
  EXPECT_THAT(card, HasSubstr(fmt::format("ids = torch.tensor([[{}] + source + [{}]])", tokenizer.begin_id(),
                                          *tokenizer.separator_id())));
}

// 10⁵ is infinite as a half.
TEST(Export, AModelThatReadsBackDifferentlyIsRemoved) {
  const TemporaryFolder folder;
  ModelConfig config = tiny_config(40);
  config.attention = AttentionKind::causal;
  const auto decoder = make_decoder(config);
  {
    const torch::NoGradGuard no_gradients;
    decoder->blocks[0]->feed_forward->down->weight.fill_(1e5);
  }
  ExportOptions options;
  options.checkpoint = write_own(folder, *decoder, tokenizer_with_40_pieces());
  options.type = "F16";
  for (const char* format : {"hf", "gguf"}) {
    options.format = format;
    options.destination = folder / format;
    EXPECT_THAT([&] { export_model(options); },
                testing::ThrowsMessage<std::runtime_error>(HasSubstr("its logits differ by")));
    EXPECT_FALSE(fs::exists(options.destination)) << format;
  }
}

// GGUF cannot say that whole words come before merges, except by the name of Llama 3's pre-tokenizer.
TEST(Export, ATokenizerThatReadsBackDifferentlyIsRemoved) {
  const TemporaryFolder folder;
  json file = parse_file(source_folder() / "tests/golden/tokenizer/byte-level.json");
  file.erase("ids");
  file["model"]["ignore_merges"] = true;
  int last = 0;
  for (const auto& [text, id] : file["model"]["vocab"].items()) last = std::max(last, id.get<int>());
  for (const json& added : file["added_tokens"]) last = std::max(last, added["id"].get<int>());
  file["model"]["vocab"]["12345"] = last + 1;  // no merges make it
  file["model"]["vocab"]["Ġ12345"] = last + 2;
  ModelConfig config = tiny_config(Tokenizer::from_bytes(file.dump(), "t").size());
  config.attention = AttentionKind::causal;
  ExportOptions options;
  options.checkpoint = write_own(folder, *make_decoder(config), file.dump());
  options.destination = folder / "out.gguf";
  options.format = "gguf";
  EXPECT_THAT([&] { export_model(options); }, testing::ThrowsMessage<std::runtime_error>(HasSubstr(
                                                  "its tokenizer gives other ids for \"She's 12345")));
  EXPECT_FALSE(fs::exists(options.destination));
}

}  // namespace calque
