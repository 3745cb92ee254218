#include "calque/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "calque/base/hash.h"
#include "calque/model/lora.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;

const fs::path golden_llama = golden_models / "llama";

// A checkpoint with adapters, whose settings are changed by `change`, on the golden Llama.
fs::path adapted(const TemporaryFolder& folder, const std::function<void(json& own)>& change) {
  json config = json::parse(read_file(golden_llama / "config.json"));
  json& own = config["calque"];
  own = {{"base", golden_llama.string()},
         {"base_hash", hex(hash_file(golden_llama / "model.safetensors"))},
         {"lora", {{"rank", 2}, {"scale", 1.0}, {"target_modules", {"qkv"}}}}};
  change(own);
  fs::create_directories(folder / "adapted");
  folder.write("adapted/config.json", config.dump());
  write_safetensors(folder / "adapted/adapters.safetensors", {}, {});
  return folder / "adapted";
}

}  // namespace

TEST(Checkpoint, SettingsOfAdaptersAreChecked) {
  const TemporaryFolder folder;
  const auto with = [&](const std::function<void(json & own)>& change) {
    return refusal([&] { Checkpoint(adapted(folder, change)).make_decoder(); });
  };
  EXPECT_THAT(with([](json&) {}), HasSubstr("adapter_"));  // only the adapters are missing
  EXPECT_THAT(with([](json& own) { own["lora"]["rank"] = int64_t{1} << 40; }), HasSubstr("out of range"));
  EXPECT_THAT(with([](json& own) { own["lora"]["rank"] = -1; }), HasSubstr("out of range"));
  EXPECT_THAT(with([](json& own) { own["lora"]["first_layer"] = -1; }), HasSubstr("out of range"));
  EXPECT_THAT(with([](json& own) { own["lora"] = 3; }), HasSubstr("wrong type"));
  EXPECT_THAT(with([](json& own) { own["lora"]["target_modules"] = 3; }), HasSubstr("wrong type"));
  EXPECT_THAT(with([](json& own) { own["base"] = 3; }), HasSubstr("wrong type"));
  const fs::path hash = adapted(folder, [](json& own) { own["base_hash"] = json::array(); });
  EXPECT_THAT(refusal([&] { Checkpoint(hash).adapter_base_hash(); }), HasSubstr("wrong type"));
}

TEST(Checkpoint, TheSizeOfAdaptedModelsIsCheckedAgainstTheBase) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  json config = json::parse(read_file(checkpoint / "config.json"));
  config["vocab_size"] = 90'000'000;
  config["intermediate_size"] = 90'000'000;
  folder.write("adapted/config.json", config.dump());
  EXPECT_THAT(refusal([&] { Checkpoint(checkpoint).make_decoder(); }),
              HasSubstr("config.json: its model has"));
}

TEST(Checkpoint, ProgressThatIsNoObjectIsRefused) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  for (const char* progress : {"[1]", "{", "3"}) {
    write_safetensors(checkpoint / "state.safetensors", {}, {{"progress", progress}});
    EXPECT_THAT(refusal([&] { Checkpoint(checkpoint).progress(); }), HasSubstr("JSON")) << progress;
  }
}

TEST(Checkpoint, AManifestMayNotNameFilesOfOtherFolders) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  folder.write("secret", "kept");
  for (const char* name : {"../secret", "/etc/hostname", "..", "a/b", ""}) {
    folder.write("adapted/manifest.json", json{{name, "0"}}.dump());
    EXPECT_THAT(refusal([&] { link_checkpoint(checkpoint, folder / "linked"); }),
                HasSubstr("is not the name of a file in the same folder"))
        << name;
  }
  EXPECT_FALSE(fs::exists(folder / "linked"));
}

TEST(Checkpoint, ADamagedConfigurationIsNamed) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  std::string text = read_file(own / "config.json");
  const std::string heads = "\"num_attention_heads\": 4";
  ASSERT_NE(text.find(heads), std::string::npos);
  text.replace(text.find(heads) + heads.size() - 1, 1, "5");
  folder.write("own/config.json", text);
  const std::string file = (own / "config.json").string();
  EXPECT_EQ(refusal([&] { Checkpoint{own}; }),
            file + ": damaged: its checksum differs from the one in manifest.json");
  fs::remove(own / "manifest.json");  // then only the values can tell
  EXPECT_EQ(refusal([&] { Checkpoint{own}; }),
            file + ": model.heads=5 is not a multiple of model.kv_heads=2");
}

// Where the values are possible by themselves, only the weights can tell.
TEST(Checkpoint, AConfigurationThatDoesNotFitTheWeightsIsNamed) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  fs::remove(own / "manifest.json");
  const json good = json::parse(read_file(own / "config.json"));
  const auto with = [&](const char* key, const json& value) {
    json config = good;
    config[key] = value;
    folder.write("own/config.json", config.dump());
    return refusal([&] { Checkpoint(own).make_decoder(); });
  };
  EXPECT_EQ(with("vocab_size", good["vocab_size"]), "accepted");
  const std::string weights = (own / "model.safetensors").string();
  EXPECT_THAT(with("head_dim", 6),
              MatchesRegex(weights + ": .* has shape \\[.*\\], config.json says \\[.*\\]"));
  EXPECT_THAT(with("num_hidden_layers", 3), MatchesRegex(weights + ": no tensor .* of config.json's model"));
  EXPECT_THAT(with("num_hidden_layers", 1),
              MatchesRegex(weights + ": .* is not part of config.json's model"));
  EXPECT_THAT(with("vocab_size", 90'000'000),
              MatchesRegex((own / "config.json").string() + ": its model has .* weights, .*"));
}

TEST(Checkpoint, WeightsThatAreNotFiniteAreNamed) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  fs::remove(own / "manifest.json");
  NamedTensors tensors;
  const Safetensors file(own / "model.safetensors");
  for (const auto& [name, entry] : file.entries()) tensors.emplace_back(name, file.tensor(name).clone());
  for (auto& [name, tensor] : tensors) {
    if (name == "model.norm.weight") tensor[3] = std::nan("");
  }
  write_safetensors(own / "model.safetensors", tensors, {});
  EXPECT_THAT(refusal([&] { Checkpoint(own).make_decoder(); }),
              HasSubstr("model.norm.weight contains NaN or infinite values"));
}

TEST(Checkpoint, HoldsWhatTransformersNeedsToTokeniseAndToGenerate) {
  const TemporaryFolder folder;
  const fs::path own = own_checkpoint(folder);
  const Tokenizer tokenizer = Tokenizer::load(golden_tokenizer);
  const int32_t separator = *tokenizer.separator_id();
  EXPECT_EQ(parse_file(own / "tokenizer_config.json"),
            (json{{"bos_token", "<s>"},
                  {"eos_token", "</s>"},
                  {"unk_token", "<unk>"},
                  {"pad_token", "<unk>"},
                  {"sep_token", "<sep>"},
                  {"clean_up_tokenization_spaces", false},
                  {"model_input_names", {"input_ids", "attention_mask"}},
                  {"model_max_length", 64},
                  {"padding_side", "left"},
                  {"split_special_tokens", true},
                  {"tokenizer_class", "PreTrainedTokenizerFast"}}));
  json never = {tokenizer.unknown_id(), tokenizer.begin_id(), separator};
  std::sort(never.begin(), never.end());
  EXPECT_EQ(parse_file(own / "generation_config.json"), (json{{"bos_token_id", tokenizer.begin_id()},
                                                              {"eos_token_id", tokenizer.end_id()},
                                                              {"pad_token_id", tokenizer.unknown_id()},
                                                              {"suppress_tokens", never}}));
  const json config = parse_file(own / "config.json");
  EXPECT_EQ(config["bos_token_id"], tokenizer.begin_id());
  EXPECT_EQ(config["eos_token_id"], tokenizer.end_id());
  EXPECT_EQ(config["pad_token_id"], tokenizer.unknown_id());
  EXPECT_EQ(config["calque"]["separator"], json::array({separator}));
  EXPECT_EQ(read_file(own / "tokenizer.model"), tokenizer.serialized());
  EXPECT_FALSE(fs::exists(own / "README.md"));
  EXPECT_FALSE(fs::exists(own / "state.safetensors"));
  EXPECT_EQ(Safetensors(own / "model.safetensors").metadata().at("format"), "pt");
}

TEST(Checkpoint, AByteLevelTokenizerIsPaddedWithItsEnd) {
  const TemporaryFolder folder;
  json file = parse_file(source_folder() / "tests/golden/tokenizer/byte-level.json");
  file.erase("ids");
  const Tokenizer tokenizer = Tokenizer::from_bytes(file.dump(), "t");
  ModelConfig config = tiny_config(tokenizer.size());
  config.attention = AttentionKind::causal;
  const fs::path own = write_own(folder, *make_decoder(config), file.dump());
  const json settings = parse_file(own / "tokenizer_config.json");
  EXPECT_EQ(settings["tokenizer_class"], "PreTrainedTokenizerFast");
  for (const char* key : {"unk_token", "pad_token", "sep_token", "split_special_tokens"})
    EXPECT_FALSE(settings.contains(key)) << key;
  EXPECT_EQ(parse_file(own / "generation_config.json")["pad_token_id"], tokenizer.end_id());
  EXPECT_FALSE(fs::exists(own / "tokenizer.model"));
  EXPECT_EQ(Checkpoint(own).tokenizer().hash(), tokenizer.hash());
}

TEST(Checkpoint, ATokenizerThatTokenizerJsonCannotExpressIsLeftToSentencePiece) {
  const TemporaryFolder folder;
  // A user-defined piece beside a dummy prefix.
  const fs::path own = write_own(folder, *make_decoder(tiny_config(40)), tokenizer_with_40_pieces());
  EXPECT_FALSE(fs::exists(own / "tokenizer.json"));
  const json settings = parse_file(own / "tokenizer_config.json");
  EXPECT_EQ(settings["tokenizer_class"], "LlamaTokenizer");
  EXPECT_EQ(settings["add_prefix_space"], true);
  EXPECT_EQ(settings["legacy"], false);
  EXPECT_FALSE(settings.contains("split_special_tokens"));
  EXPECT_FALSE(settings.contains("sep_token"));
}

TEST(Checkpoint, EveryFileIsInTheManifestAndCheckedAgainstIt) {
  const TemporaryFolder folder;
  const auto decoder = make_decoder(tiny_config(40));
  CheckpointContent content;
  content.weights = weight_views(*decoder);
  content.config = hf_config(decoder->config());
  content.tokenizer = tokenizer_with_40_pieces();
  content.readme = "A model.";
  content.state = {{"x", torch::ones({3})}};
  content.progress = {{"step", 7}};
  fs::create_directories(folder / ".own.tmp");  // left behind by a killed process
  folder.write(".own.tmp/left", "over");
  write_checkpoint(folder / "own", content);
  const fs::path own = folder / "own";
  EXPECT_FALSE(fs::exists(own / "left"));
  EXPECT_EQ(read_file(own / "README.md"), "A model.");
  EXPECT_EQ(Checkpoint(own).progress(), (json{{"step", 7}}));
  EXPECT_TRUE(torch::equal(Checkpoint(own).state().tensor("x"), torch::ones({3})));
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(own)) files.insert(entry.path().filename());
  const json manifest = parse_file(own / "manifest.json");
  EXPECT_EQ(files.size(), manifest.size() + 1);
  EXPECT_EQ(refusal([&] { Checkpoint(own).check_files(); }), "accepted");
  for (const auto& [name, checksum] : manifest.items()) {
    const std::string before = read_file(own / name);
    std::string damaged = before;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    folder.write("own/" + name, damaged);
    EXPECT_THAT(refusal([&] { Checkpoint(own).check_files(); }), HasSubstr(name + ": damaged"));
    folder.write("own/" + name, before);
  }
  fs::remove(own / "manifest.json");
  EXPECT_EQ(refusal([&] { Checkpoint(own).check_files(); }), "accepted");
  folder.write("own/manifest.json", "[]");
  EXPECT_THAT(refusal([&] { Checkpoint{own}; }), HasSubstr("expected a JSON object with checksums"));
}

TEST(Checkpoint, ALinkHasTheModelWithoutTheTrainingState) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, uint64_t seed, int step) {
    const auto decoder = make_decoder(tiny_config(40), seed);
    CheckpointContent content;
    content.weights = weight_views(*decoder);
    content.config = hf_config(decoder->config());
    content.state = {{"x", torch::full({1}, step)}};
    content.progress = {{"step", step}};
    write_checkpoint(folder / name, content);
  };
  write("a", 1, 1);
  write("same", 1, 2);
  write("other", 2, 1);
  fs::create_directories(folder / ".link.tmp");
  folder.write(".link.tmp/left", "over");
  link_checkpoint(folder / "a", folder / "link");
  EXPECT_FALSE(fs::exists(folder / "link/left"));
  EXPECT_FALSE(fs::exists(folder / "link/state.safetensors"));
  EXPECT_FALSE(parse_file(folder / "link/manifest.json").contains("state.safetensors"));
  EXPECT_EQ(refusal([&] { Checkpoint(folder / "link").check_files(); }), "accepted");
  EXPECT_TRUE(same_model(folder / "a", folder / "link"));
  EXPECT_TRUE(same_model(folder / "a", folder / "same"));  // the state is no part of the model
  EXPECT_FALSE(same_model(folder / "a", folder / "other"));
  EXPECT_FALSE(same_model(folder / "a", folder / "none"));
  EXPECT_FALSE(same_model(folder / "none", folder / "none"));
  EXPECT_FALSE(Checkpoint(folder / "a").has_tokenizer());
  EXPECT_THAT(refusal([&] { Checkpoint(folder / "a").tokenizer(); }),
              HasSubstr("the checkpoint has no tokenizer"));
  EXPECT_THAT(refusal([&] { Checkpoint{folder / "none"}; }), HasSubstr("none: no such checkpoint"));
}

TEST(Checkpoint, AdaptersAreMergedIntoTheirBaseWhichIsLookedForInsideFirst) {
  const TemporaryFolder folder;
  const auto base = Checkpoint(golden_llama).make_decoder();
  const auto decoder = Checkpoint(golden_llama).make_decoder();
  add_adapters(*decoder, {2, 0.5, 0, {"down"}, 1}, 3, WeightPrecision::float32);
  CheckpointContent content;
  for (const auto& parameter : decoder->named_parameters()) {
    if (parameter.value().requires_grad())
      content.adapters.emplace_back(parameter.key(), torch::full_like(parameter.value(), 0.25).detach());
  }
  content.config = parse_file(golden_llama / "config.json");
  content.config["calque"] = {
      {"base", (folder / "gone").string()},
      {"base_inside", "../base"},
      {"base_hash", hex(hash_file(golden_llama / "model.safetensors"))},
      {"lora", {{"rank", 2}, {"scale", 0.5}, {"matrices", {"down"}}, {"first_layer", 1}}}};
  content.tokenizer = tokenizer_with_40_pieces();
  write_checkpoint(folder / "adapted", content);
  const Checkpoint checkpoint(folder / "adapted");
  EXPECT_TRUE(fs::exists(folder / "adapted/tokenizer.model"));
  EXPECT_FALSE(fs::exists(folder / "adapted/tokenizer_config.json"));  // transformers cannot open it
  EXPECT_EQ(checkpoint.adapter_base_hash(), content.config["calque"]["base_hash"]);
  EXPECT_EQ(refusal([&] { checkpoint.make_decoder(); }),
            (folder / "adapted").string() + ": the base model of its adapters was not found; tried " +
                (folder / "base").string() + " (does not exist), " + (folder / "gone").string() +
                " (does not exist)");
  fs::create_directories(folder / "base");
  folder.write("base/model.safetensors", "another");
  EXPECT_THAT(refusal([&] { checkpoint.make_decoder(); }),
              HasSubstr("base (a different model: its checksum differs), "));
  fs::copy_file(golden_llama / "model.safetensors", folder / "base/model.safetensors",
                fs::copy_options::overwrite_existing);
  const auto merged = checkpoint.make_decoder();
  const auto weight = [](const Decoder& one, size_t layer) {
    return one.blocks[layer]->feed_forward->down->weight;
  };
  EXPECT_TRUE(torch::equal(weight(*merged, 0), weight(*base, 0)));
  // Two ranks of 0.25 · 0.25, scaled by a half.
  EXPECT_LT((weight(*merged, 1) - weight(*base, 1) - 0.5 * 2 * 0.0625).abs().max().item<double>(), 1e-6);
}

TEST(Checkpoint, TheRankOfAdaptersIsFromOneTo4096) {
  const TemporaryFolder folder;
  const auto with = [&](int64_t rank) {
    return refusal(
        [&] { Checkpoint(adapted(folder, [&](json& own) { own["lora"]["rank"] = rank; })).make_decoder(); });
  };
  for (const int64_t rank : {1, 4096}) EXPECT_THAT(with(rank), HasSubstr("no tensor")) << rank;
  for (const int64_t rank : {0, 4097}) EXPECT_THAT(with(rank), HasSubstr("out of range")) << rank;
}

TEST(Checkpoint, AdaptersOfAnotherShapeAreNamed) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  const auto decoder = Checkpoint(golden_llama).make_decoder();
  add_adapters(*decoder, {2, 1, 0, {"qkv"}}, 1, WeightPrecision::float32);
  NamedTensors adapters;
  for (const auto& parameter : decoder->named_parameters()) {
    if (parameter.value().requires_grad()) adapters.emplace_back(parameter.key(), parameter.value().detach());
  }
  write_safetensors(checkpoint / "adapters.safetensors", adapters, {});
  EXPECT_EQ(refusal([&] { Checkpoint(checkpoint).make_decoder(); }), "accepted");
  adapters.back().second = torch::zeros({3, 5});
  write_safetensors(checkpoint / "adapters.safetensors", adapters, {});
  EXPECT_THAT(refusal([&] { Checkpoint(checkpoint).make_decoder(); }),
              HasSubstr("has shape [3, 5], expected ["));
}

}  // namespace calque
