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
              HasSubstr((folder / "gpt2/config.json").string() + ": its model has"));
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

TEST(Import, PruningKeepsTheLastPiece) {
  const TemporaryFolder folder;
  ImportOptions options;
  options.source = own_checkpoint(folder);
  options.destination = folder / "pruned";
  const Tokenizer before = Tokenizer::load(golden_tokenizer);
  const std::string last = before.piece(before.size() - 1),
                    text = before.decode(std::vector<int32_t>{before.size() - 1});
  options.prune_to.emplace_back().pairs = folder.write("a.tsv", text + "\tthe cat\n");
  import_model(options);
  const Tokenizer after = Checkpoint(folder / "pruned").tokenizer();
  EXPECT_EQ(after.piece(after.size() - 1), last);
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

TEST(Import, TheReportSaysWhatWasRead) {
  const TemporaryFolder folder;
  ImportOptions options;
  options.source = golden_models / "llama-grouped-untied";
  options.destination = folder / "deep/imported";  // folders above it are made
  options.tokenizer = folder.write("forty.model", tokenizer_with_40_pieces());
  const ImportResult result = import_model(options);
  const auto decoder = Checkpoint(options.destination).make_decoder();
  EXPECT_EQ(result.to_json(), (json{{"format", "Hugging Face folder"},
                                    {"architecture", "llama"},
                                    {"tokenizer", "forty.model"},
                                    {"parameters", decoder->parameter_count()},
                                    {"pieces", 40},
                                    {"model", describe_model(decoder->config())}}));
  EXPECT_EQ(refusal([&] { import_model(options); }), options.destination.string() + ": already exists");
  EXPECT_EQ(ImportResult().parameters, 0);
  ImportOptions pruned = options;
  pruned.source = own_checkpoint(folder);
  pruned.tokenizer.clear();
  pruned.destination = folder / "pruned";
  pruned.prune_to.emplace_back().pairs = folder.write("a.tsv", "le chat\tthe cat\n");
  const ImportResult small = import_model(pruned);
  const auto before = Checkpoint(pruned.source).make_decoder();
  EXPECT_EQ(small.pieces_before, before->config().vocabulary);
  EXPECT_EQ(small.parameters_before, before->parameter_count());
  EXPECT_EQ(small.parameters,
            before->parameter_count() - 16 * (before->config().vocabulary - small.model.vocabulary));
  EXPECT_EQ(small.to_json()["pieces_before"], before->config().vocabulary);
  EXPECT_EQ(small.to_json()["parameters_before"], before->parameter_count());
  pruned.source = golden_models / "llama";
  pruned.destination = folder / "none";
  EXPECT_THAT(refusal([&] { import_model(pruned); }), HasSubstr("the model has no tokenizer"));
}

TEST(Import, RowsThatNoPieceRefersToAreDropped) {
  const TemporaryFolder folder;
  const auto wide = make_decoder(tiny_config(43));
  ImportOptions options;
  options.source = write_own(folder, *wide, tokenizer_with_40_pieces());
  options.destination = folder / "imported";
  EXPECT_EQ(import_model(options).model.vocabulary, 40);
  const auto narrow = Checkpoint(options.destination).make_decoder();
  EXPECT_TRUE(torch::equal(narrow->embedding->weight, wide->embedding->weight.slice(0, 0, 40)));
  EXPECT_TRUE(torch::equal(narrow->norm->weight, wide->norm->weight));
}

TEST(Import, ATokenizerWithMorePiecesThanTheModelIsAProblem) {
  const TemporaryFolder folder;
  const auto file = folder.write("forty.model", tokenizer_with_40_pieces());
  EXPECT_TRUE(open_import_source(golden_models / "llama", file).problems.empty());
  SentencePieceFile more = forty_pieces();
  more.pieces.push_back({"▁q", 0, SentencePiece::Kind::normal});
  EXPECT_THAT(
      open_import_source(golden_models / "llama", folder.write("more.model", more.serialize())).problems,
      testing::ElementsAre("the tokenizer has 41 pieces, but the model's vocabulary only 40"));
  EXPECT_EQ(
      open_import_source(golden_models / "llama", folder.write("bad.model", "no model")).problems.size(), 1U);
}

TEST(Import, DamagedAndInfiniteWeightsAreNotImported) {
  const TemporaryFolder folder;
  const auto decoder = make_decoder(tiny_config(40));
  ImportOptions options;
  options.source = write_own(folder, *decoder, tokenizer_with_40_pieces());
  options.destination = folder / "imported";
  const Safetensors file(options.source / "model.safetensors");
  NamedTensors tensors;
  for (const auto& [name, entry] : file.entries()) tensors.emplace_back(name, file.tensor(name).clone());
  tensors.front().second.view({-1})[3] = INFINITY;
  write_safetensors(options.source / "model.safetensors", tensors, {});
  EXPECT_THAT(refusal([&] { import_model(options); }), HasSubstr("model.safetensors: damaged"));
  fs::remove(options.source / "manifest.json");
  EXPECT_THAT(refusal([&] { import_model(options); }),
              HasSubstr("model.embed_tokens.weight contains NaN or infinite values"));
  EXPECT_FALSE(fs::exists(options.destination));
}

TEST(Import, FoldersMayNameTheirTensorsWithoutTheModelsPrefixAndHoldBuffers) {
  const TemporaryFolder folder;
  const auto open = [&](const std::function<void(NamedTensors&)>& change) {
    fs::remove_all(folder / "model");
    fs::create_directory(folder / "model");
    fs::copy(golden_models / "llama/config.json", folder / "model/config.json");
    const Safetensors file(golden_models / "llama/model.safetensors");
    NamedTensors tensors;
    for (const auto& [name, entry] : file.entries()) tensors.emplace_back(name, file.tensor(name).clone());
    change(tensors);
    write_safetensors(folder / "model/model.safetensors", tensors, {});
    return open_import_source(folder / "model");
  };
  const ImportSource bare = open([](NamedTensors& all) {
    for (auto& [name, tensor] : all) {
      if (name.starts_with("model.")) name = name.substr(6);
    }
    for (const char* buffer :
         {"layers.0.self_attn.rotary_emb.inv_freq", "h.0.attn.bias", "h.0.attn.masked_bias"})
      all.emplace_back(buffer, torch::zeros({2}));
    all.emplace_back("lm_head.weight", torch::zeros({40, 16}));  // a copy of the tied embedding
  });
  EXPECT_EQ(bare.path, folder / "model");
  EXPECT_EQ(bare.format, "Hugging Face folder");
  EXPECT_EQ(bare.tensors.at("model.norm.weight").stored_as, "norm.weight, Float");
  EXPECT_EQ(refusal([&] { load_decoder(bare); }), "accepted");
  EXPECT_THAT(
      refusal([&] { open([](NamedTensors& all) { all.emplace_back("norm.weight", torch::zeros({16})); }); }),
      HasSubstr("is also in another file"));
  fs::remove(folder / "model/model.safetensors");
  EXPECT_THAT(open_import_source(folder / "model").problems,
              testing::ElementsAre("no model.safetensors in the folder"));
  fs::remove(folder / "model/config.json");
  EXPECT_THAT(refusal([&] { open_import_source(folder / "model"); }), HasSubstr("config.json is missing"));
  EXPECT_THAT(refusal([&] { open_import_source(folder.write("x", "what?")); }),
              HasSubstr("not in a known format"));
}

TEST(Import, BeginAndEndOfATokenizerJsonComeFromItsSettingsOrTheModels) {
  const TemporaryFolder folder;
  const std::string tokens = R"("added_tokens": [{"id": 3, "content": "[B]"}, {"id": 4, "content": "[E]"}])";
  const auto opened = [&](const std::string& settings, const json& config_ids) {
    fs::remove_all(folder / "model");
    fs::copy(golden_models / "llama", folder / "model");
    json config = parse_file(folder / "model/config.json");
    config.update(config_ids);
    folder.write("model/config.json", config.dump());
    json file = parse_file(source_folder() / "tests/golden/tokenizer/byte-level.json");
    file.erase("ids");
    json vocabulary = json::object();
    for (const auto& [text, id] : file["model"]["vocab"].items()) {
      if (id.get<int>() < 38) vocabulary[text] = id;
    }
    file["model"]["vocab"] = vocabulary;
    file["model"]["merges"] = json::array();
    file["added_tokens"] = json::parse("{" + tokens + "}")["added_tokens"];
    file["post_processor"] = nullptr;
    folder.write("model/tokenizer.json", file.dump());
    if (!settings.empty()) folder.write("model/tokenizer_config.json", settings);
    const ImportSource source = open_import_source(folder / "model");
    EXPECT_EQ(source.tokenizer_kind, "tokenizer.json");
    return json::parse(*source.tokenizer).dump();
  };
  const std::string by_name =
      opened(R"({"bos_token": "[B]", "eos_token": {"content": "[E]"}})", json::object());
  EXPECT_EQ(by_name, opened("", {{"bos_token_id", 3}, {"eos_token_id", 4}}));
  EXPECT_EQ(by_name, opened(R"({"bos_token": null})", {{"bos_token_id", 3}, {"eos_token_id", {4, 7}}}));
  EXPECT_NE(by_name, opened("", {{"bos_token_id", 4}, {"eos_token_id", 3}}));
  // Without a begin token the end token takes its place.
  EXPECT_EQ(opened("", {{"bos_token_id", nullptr}, {"eos_token_id", 4}}),
            opened("", {{"bos_token_id", 4}, {"eos_token_id", 4}}));
}

TEST(Inspect, CountsTheParametersOfTheTensorsItLists) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  const Inspection found = inspect_model(own);
  const auto decoder = Checkpoint(own).make_decoder();
  EXPECT_EQ(found.parameters, decoder->parameter_count());
  EXPECT_EQ(found.tensors.size(), 2U + 2 * 9);
  EXPECT_EQ(found.tokenizer, "SentencePiece");
  const json summary = found.to_json();
  EXPECT_EQ(summary["format"], "Hugging Face folder");
  EXPECT_EQ(summary["parameters"], decoder->parameter_count());
  EXPECT_EQ(summary["tokenizer"], "SentencePiece");
  EXPECT_EQ(summary["model"], describe_model(decoder->config()));
  EXPECT_EQ(summary["problems"], json::array());
  EXPECT_EQ(summary["tensors"].back(),
            (json{{"name", "model.norm.weight"}, {"shape", {16}}, {"stored", "model.norm.weight, Float"}}));
  const Inspection file = inspect_model(own / "model.safetensors");
  EXPECT_EQ(file.format, "safetensors file");
  EXPECT_FALSE(file.importable());
  EXPECT_EQ(file.tensors.size(), 20U);
  EXPECT_EQ(file.to_json()["tensors"][0]["stored"], "Float");
  EXPECT_FALSE(file.to_json().contains("model") || file.to_json().contains("parameters"));
}

TEST(Inspect, TokenIdsForLogitsAreChecked) {
  const fs::path model = golden_models / "llama";
  const auto with = [&](const std::vector<int64_t>& ids) {
    return refusal([&] { inspect_logits(model, ids); });
  };
  EXPECT_EQ(with({0, 39}), "accepted");
  EXPECT_EQ(with({}), "expected at least one token id, found none");
  EXPECT_EQ(with({40}), "token id 40 is not in the vocabulary, which has 40 pieces");
  EXPECT_THAT(with({-1}), HasSubstr("token id -1"));
  EXPECT_EQ(with(std::vector<int64_t>(32, 1)), "accepted");
  EXPECT_EQ(with(std::vector<int64_t>(33, 1)), "33 token ids do not fit into the model's context of 32");
}

}  // namespace calque
