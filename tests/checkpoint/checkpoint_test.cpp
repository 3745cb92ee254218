#include "calque/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/hash.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

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
  EXPECT_THAT(refusal([&] { Checkpoint(checkpoint).make_decoder(); }), HasSubstr("its configuration needs"));
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

}  // namespace calque
