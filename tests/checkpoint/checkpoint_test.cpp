#include "calque/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "temporary_folder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const fs::path golden_llama = fs::path(CALQUE_SOURCE_FOLDER) / "tests/golden/models/llama";

template <class Function>
std::string refusal_of(const Function& function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

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
    return refusal_of([&] { Checkpoint(adapted(folder, change)).make_decoder(); });
  };
  EXPECT_THAT(with([](json&) {}), HasSubstr("adapter_"));  // only the adapters are missing
  EXPECT_THAT(with([](json& own) { own["lora"]["rank"] = int64_t{1} << 40; }), HasSubstr("out of range"));
  EXPECT_THAT(with([](json& own) { own["lora"]["rank"] = -1; }), HasSubstr("out of range"));
  EXPECT_THAT(with([](json& own) { own["lora"]["first_layer"] = -1; }), HasSubstr("out of range"));
  EXPECT_THAT(with([](json& own) { own["lora"] = 3; }), HasSubstr("wrong type"));
  EXPECT_THAT(with([](json& own) { own["lora"]["target_modules"] = 3; }), HasSubstr("wrong type"));
  EXPECT_THAT(with([](json& own) { own["base"] = 3; }), HasSubstr("wrong type"));
  const fs::path hash = adapted(folder, [](json& own) { own["base_hash"] = json::array(); });
  EXPECT_THAT(refusal_of([&] { Checkpoint(hash).adapter_base_hash(); }), HasSubstr("wrong type"));
}

TEST(Checkpoint, TheSizeOfAdaptedModelsIsCheckedAgainstTheBase) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  json config = json::parse(read_file(checkpoint / "config.json"));
  config["vocab_size"] = 90'000'000;
  config["intermediate_size"] = 90'000'000;
  folder.write("adapted/config.json", config.dump());
  EXPECT_THAT(refusal_of([&] { Checkpoint(checkpoint).make_decoder(); }),
              HasSubstr("its configuration needs"));
}

TEST(Checkpoint, ProgressThatIsNoObjectIsRefused) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  for (const char* progress : {"[1]", "{", "3"}) {
    write_safetensors(checkpoint / "state.safetensors", {}, {{"progress", progress}});
    EXPECT_THAT(refusal_of([&] { Checkpoint(checkpoint).progress(); }), HasSubstr("JSON")) << progress;
  }
}

TEST(Checkpoint, AManifestMayNotNameFilesOfOtherFolders) {
  const TemporaryFolder folder;
  const fs::path checkpoint = adapted(folder, [](json&) {});
  folder.write("secret", "kept");
  for (const char* name : {"../secret", "/etc/hostname", "..", "a/b", ""}) {
    folder.write("adapted/manifest.json", json{{name, "0"}}.dump());
    EXPECT_THAT(refusal_of([&] { link_checkpoint(checkpoint, folder / "linked"); }),
                HasSubstr("is not the name of a file in the same folder"))
        << name;
  }
  EXPECT_FALSE(fs::exists(folder / "linked"));
}

}  // namespace calque
