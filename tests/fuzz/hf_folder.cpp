// Fuzz target: a Hugging Face folder, imported and opened as a checkpoint. The input is its files one after
// another, each as a line with its name and its length, and then its bytes.
#include <charconv>
#include <string_view>

#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/formats.h"
#include "fuzz.h"

namespace {

constexpr std::string_view file_names[] = {
    "config.json",       "model.safetensors", "model.safetensors.index.json", "adapters.safetensors",
    "state.safetensors", "tokenizer.json",    "tokenizer_config.json",        "manifest.json"};

void unpack(std::string_view bytes, const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) std::filesystem::remove(entry);
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const std::string_view name = line.substr(0, line.find(' '));
    if (std::find(std::begin(file_names), std::end(file_names), name) == std::end(file_names)) continue;
    size_t length = bytes.size();
    if (name.size() < line.size()) std::from_chars(line.begin() + name.size() + 1, line.end(), length);
    length = std::min(length, bytes.size());
    std::ofstream(folder / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(length));
    bytes.remove_prefix(length);
  }
}

template <class Function>
void allow_refusal(const Function& function) {
  try {
    function();
  } catch (const calque::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return calque::fuzz_file({}, 0, [&](const std::filesystem::path& file) {
    const std::filesystem::path folder = file.parent_path() / "folder";
    std::filesystem::create_directories(folder);
    unpack({reinterpret_cast<const char*>(data), size}, folder);
    if (!std::filesystem::exists(folder / "config.json")) return;
    allow_refusal([&] {
      const calque::ImportSource source = calque::open_import_source(folder);
      if (source.problems.empty()) calque::load_decoder(source);
    });
    const calque::Checkpoint checkpoint(folder);
    allow_refusal([&] { checkpoint.check_files(); });
    allow_refusal([&] { checkpoint.tokenizer(); });
    allow_refusal([&] { checkpoint.adapter_base_hash(); });
    allow_refusal([&] { checkpoint.progress(); });
    allow_refusal([&] { checkpoint.make_decoder(); });
  });
}
