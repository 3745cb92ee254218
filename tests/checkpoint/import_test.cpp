// Imported models compared with the logits of their reference implementations (tools/goldens/make_models.py).
#include "calque/checkpoint/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/gguf.h"
#include "calque/checkpoint/quantised.h"
#include "calque/data/sequence.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

}  // namespace

TEST(Import, LogitsMatchTransformers) {
  for (const char* name :
       {"llama", "llama-grouped-untied", "llama-sharded", "gpt2", "qwen2", "qwen3", "gemma3"}) {
    const json golden = parse_file(golden_models / name / "logits.json");
    const auto logits = inspect_logits(golden_models / name, golden["ids"].get<std::vector<int64_t>>());
    EXPECT_LT(worst(logits, golden["logits"]), 1e-4) << name;
    // Again after the import.
    const TemporaryFolder folder;
    ImportOptions options;
    options.source = golden_models / name;
    options.destination = folder / "imported";
    import_model(options);
    EXPECT_LT(worst(inspect_logits(folder / "imported", golden["ids"].get<std::vector<int64_t>>()),
                    golden["logits"]),
              1e-4);
  }
}

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

TEST(Import, PruningKeepsLogitsAndTheEncodingOfTheCorpus) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  CorpusPart part;
  part.pairs = folder.write(
      "corpus.tsv", "Le petit chat dort.\tThe little cat sleeps.\nOù vas-tu ?\tWhere are you going?\n");
  ImportOptions options;
  options.source = own;
  options.destination = folder / "pruned";
  options.prune_to = {part};
  const json summary = import_model(options).to_json();
  EXPECT_LT(summary["pieces"].get<int64_t>(), summary["pieces_before"].get<int64_t>() * 2 / 3);
  const Tokenizer before = Tokenizer::load(own / "tokenizer.model"),
                  after = Tokenizer::load(folder / "pruned/tokenizer.model");
  std::vector<int64_t> old_ids = {before.begin_id()}, new_ids = {after.begin_id()};
  for (const char* text : {"Le petit chat dort.", "Where are you going?", "The little cat sleeps."}) {
    const auto old_pieces = before.encode(text), new_pieces = after.encode(text);
    ASSERT_EQ(old_pieces.size(), new_pieces.size()) << text;
    for (size_t i = 0; i < old_pieces.size(); ++i) {
      EXPECT_EQ(before.piece(old_pieces[i]), after.piece(new_pieces[i]));
      old_ids.push_back(old_pieces[i]);
      new_ids.push_back(new_pieces[i]);
    }
  }
  EXPECT_EQ(after.decode(after.encode("zèbre €")), "zèbre €");  // byte pieces are kept
  const auto wide = inspect_logits(own, old_ids), narrow = inspect_logits(folder / "pruned", new_ids);
  for (size_t row = 0; row < wide.size(); ++row) {
    for (size_t i = 0; i < old_ids.size(); ++i)
      EXPECT_NEAR(narrow[row][static_cast<size_t>(new_ids[i])], wide[row][static_cast<size_t>(old_ids[i])],
                  1e-5);
  }
}

TEST(Import, MissingUnexpectedAndMisshapenTensorsAreReported) {
  const TemporaryFolder folder;
  const auto change = [&](const std::function<void(NamedTensors&)>& edit) {
    fs::remove_all(folder / "changed");
    fs::create_directory(folder / "changed");
    fs::copy(golden_models / "llama/config.json", folder / "changed/config.json");
    const Safetensors file(golden_models / "llama/model.safetensors");
    NamedTensors tensors;
    for (const auto& [name, entry] : file.entries()) tensors.emplace_back(name, file.tensor(name).clone());
    edit(tensors);
    write_safetensors(folder / "changed/model.safetensors", tensors, {});
    return refusal([&] { load_decoder(open_import_source(folder / "changed")); });
  };
  EXPECT_EQ(change([](NamedTensors&) {}), "accepted");
  EXPECT_THAT(change([](NamedTensors& all) { all.erase(all.begin() + 3); }), HasSubstr("is missing"));
  EXPECT_THAT(change([](NamedTensors& all) { all.emplace_back("model.extra", torch::zeros({2})); }),
              HasSubstr("model.extra [2] is not part of this model"));
  EXPECT_THAT(change([](NamedTensors& all) {
                for (auto& [name, tensor] : all) {
                  if (name == "model.norm.weight") tensor = torch::zeros({17});
                }
              }),
              HasSubstr("has shape [17], expected [16]"));
}

TEST(Import, MaliciousFilesAreRefused) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  ExportOptions options;
  options.checkpoint = own;
  options.destination = folder / "good.gguf";
  options.format = "gguf";
  options.type = "Q8_0";
  options.skip_normalization = true;
  export_model(options);
  const std::string good = read_file(options.destination);
  const auto open = [&](const std::string& bytes) {
    return refusal([&] {
      const ImportSource source = open_import_source(folder.write("bad.gguf", bytes));
      load_decoder(source);
    });
  };
  EXPECT_EQ(open(good), "accepted");
  EXPECT_NE(open(good.substr(0, good.size() - 1000)), "accepted");
  EXPECT_NE(open(good.substr(0, 100)), "accepted");
  const auto with = [&](size_t at, uint64_t value) {
    std::string bytes = good;
    bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    return open(bytes);
  };
  EXPECT_THAT(with(8, 1ULL << 60), HasSubstr("tensors and"));
  EXPECT_THAT(with(16, 1ULL << 60), HasSubstr("tensors and"));
  EXPECT_THAT(with(24, 1ULL << 62), HasSubstr("ends too early"));
  std::string layers = good;
  const std::string key = "llama.block_count";
  layers.replace(good.find(key) + key.size() + 4, 4, std::string("\xFF\xFF\xFF\0", 4));
  EXPECT_THAT(open(layers), HasSubstr("layers, but only"));
  std::string type = good;  // the type follows the tensor's name, number of dimensions and shape
  const std::string tensor = "token_embd.weight";
  type.replace(good.find(tensor) + tensor.size() + 4 + 2 * 8, 4, std::string("\x63\0\0\0", 4));
  EXPECT_THAT(open(type), HasSubstr("token_embd.weight has ggml type 99, which is not supported"));
  std::string version = good;
  version[4] = 9;
  EXPECT_THAT(open(version), HasSubstr("version 9"));
  // Every seventh byte of the header inverted, one at a time: none may crash.
  for (size_t at = 0; at < 1200; at += 7) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xFF);
    open(bytes);
  }
  // A position table that would not fit into memory.
  fs::copy(golden_models / "gpt2", folder / "gpt2");
  json positions = parse_file(folder / "gpt2/config.json");
  positions["n_positions"] = 90'000'000;
  folder.write("gpt2/config.json", positions.dump());
  EXPECT_THAT(refusal([&] { load_decoder(open_import_source(folder / "gpt2")); }),
              HasSubstr((folder / "gpt2").string() + ": its configuration needs"));
  const fs::path index = folder / "sharded";
  fs::create_directory(index);
  fs::copy(golden_models / "llama/config.json", index / "config.json");
  folder.write("sharded/model.safetensors.index.json",
               R"({"weight_map": {"a": "../own/model.safetensors"}})");
  EXPECT_THAT(refusal([&] { open_import_source(index); }),
              HasSubstr("is not the name of a file in the same folder"));
}

TEST(Import, ValuesOfTheWrongTypeAreRefused) {
  const TemporaryFolder folder;
  const auto with = [&](const char* file, const std::function<void(json&)>& change) {
    fs::remove_all(folder / "model");
    fs::copy(golden_models / "llama", folder / "model");
    folder.write("model/tokenizer.json", R"({"model": {"vocab": {"a": 1}}})");
    folder.write("model/tokenizer_config.json", R"({"bos_token": "a"})");
    json content = parse_file(folder / "model" / file);
    change(content);
    folder.write(std::string("model/") + file, content.dump());
    return refusal([&] { load_decoder(open_import_source(folder / "model")); });
  };
  EXPECT_THAT(with("config.json", [](json& all) { all["model_type"] = 3; }), HasSubstr("wrong type"));
  EXPECT_THAT(with("config.json", [](json& all) { all["rms_norm_eps"] = "x"; }), HasSubstr("wrong type"));
  EXPECT_THAT(with("tokenizer.json", [](json& all) { all["added_tokens"] = {1}; }), HasSubstr("wrong type"));
  EXPECT_THAT(with("tokenizer_config.json",
                   [](json& all) {
                     all["bos_token"] = {{"content", 1}};
                   }),
              HasSubstr("wrong type"));
  folder.write("tokenizer.json", R"({"model": {"vocab": {"a": 1}}, "added_tokens": [1]})");
  EXPECT_THAT(refusal([&] { convert_tokenizer(folder / "tokenizer.json", 1, 2); }), HasSubstr("wrong type"));
}

TEST(Inspect, DescribesTheModelAndWhyItCannotBeImported) {
  const TemporaryFolder folder;
  const json summary = inspect_model(golden_models / "gpt2").to_json();
  EXPECT_TRUE(summary["importable"].get<bool>());
  EXPECT_EQ(summary["architecture"], "gpt2");
  EXPECT_EQ(summary["model"]["layers"], 2);
  fs::create_directory(folder / "other");
  json config = parse_file(golden_models / "llama/config.json");
  config["rope_parameters"] = {{"rope_type", "llama3"}, {"rope_theta", 10000.0}};
  folder.write("other/config.json", config.dump());
  fs::copy(golden_models / "llama/model.safetensors", folder / "other/model.safetensors");
  const json scaled = inspect_model(folder / "other").to_json();
  EXPECT_FALSE(scaled["importable"].get<bool>());
  EXPECT_THAT(scaled["problems"][0].get<std::string>(), HasSubstr("rope scaling (llama3) is not supported"));
}

TEST(Import, PruningKeepsTheSeparator) {
  const TemporaryFolder folder;
  ImportOptions options;
  options.source = own_checkpoint(folder);
  options.destination = folder / "pruned";
  options.prune_to.emplace_back().pairs = folder.write("a.tsv", "le chat\tthe cat\n");
  import_model(options);
  EXPECT_TRUE(Checkpoint(folder / "pruned").tokenizer().separator_id().has_value());
}

TEST(Import, PruningKeepsThePiecesThatOnlyThePromptUses) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  fs::remove(own / "manifest.json");
  json config = parse_file(own / "config.json");
  const std::string prompt = "Question: {source} Réponse: {target}";
  config["calque"]["prompt"] = prompt;
  folder.write("own/config.json", config.dump());
  ImportOptions options;
  options.source = own;
  options.destination = folder / "pruned";
  options.prune_to.emplace_back().pairs = folder.write("a.tsv", "le chat\tthe cat\n");
  import_model(options);
  const Checkpoint pruned(folder / "pruned");
  EXPECT_EQ(pruned.config().prompt, prompt);
  const Tokenizer before = Tokenizer::load(golden_tokenizer), after = pruned.tokenizer();
  ASSERT_LT(after.size(), before.size() / 2);
  const SequenceFormat wide = pair_format(before, prompt), narrow = pair_format(after, prompt);
  const auto pieces = [](const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
    std::vector<std::string> all;
    for (const int32_t id : ids) all.push_back(tokenizer.piece(id));
    return all;
  };
  EXPECT_EQ(pieces(after, narrow.begin), pieces(before, wide.begin));
  EXPECT_EQ(pieces(after, narrow.separator), pieces(before, wide.separator));
  EXPECT_GT(narrow.separator.size(), 2U);
}

TEST(Inspect, DeeplyNestedJsonIsRefused) {
  const TemporaryFolder folder;
  fs::copy(golden_models / "llama", folder / "deep", fs::copy_options::recursive);
  folder.write("deep/tokenizer.json",
               "{\"model\":" + std::string(300'000, '[') + std::string(300'000, ']') + "}");
  EXPECT_THAT(refusal([&] { inspect_model(folder / "deep"); }), HasSubstr("nested more than"));
}

}  // namespace calque
