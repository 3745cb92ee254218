// calque import, export and inspect as a person uses them, on the pretrained model of the repository.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string base = (source_folder() / "checkpoints/base").string();

}  // namespace

TEST(ImportCommand, ASourceThatIsNotThereHintsAtTheDownload) {
  const TemporaryFolder folder;
  for (const char* words : {"import gpt2", "import gpt2 mine"}) {
    const Outcome outcome = run_calque(folder, words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("gpt2: no such file or folder"));
    EXPECT_THAT(outcome.err, HasSubstr("tools/get-checkpoint"));
  }
  EXPECT_THAT(run_calque(folder, "import " + base).err, HasSubstr("DEST is missing"));
}

// Logits of the pieces that are kept do not change, so what the whole model says with them, the pruned one
// says.
TEST(ImportCommand, APrunedModelTranslatesAsTheWholeOne) {
  const TemporaryFolder folder;
  std::string sources;
  std::istringstream lines(read_file(source_folder() / "data/everyday/valid.tsv"));
  std::string line;
  for (int i = 0; i < 20 && std::getline(lines, line); ++i) sources += line.substr(0, line.find('\t')) + "\n";
  const std::string options = " --beam 1 --max-length-extra 5 --max-length-ratio 0.01";
  const Outcome whole = run_calque(folder, "translate " + base + options, sources);
  ASSERT_EQ(whole.code, 0) << whole.err;
  std::string corpus = read_file(source_folder() / "data/everyday/valid.tsv");
  std::istringstream said(whole.out);
  while (std::getline(said, line)) corpus += line + "\t" + line + "\n";  // so that its pieces are kept
  folder.write("corpus.tsv", corpus);
  const Outcome import =
      run_calque(folder, "import " + base + " pruned --json --prune-vocabulary corpus.tsv");
  ASSERT_EQ(import.code, 0) << import.err;
  const json summary = json::parse(import.out);
  EXPECT_LT(summary["pieces"], summary["pieces_before"]);
  const Outcome pruned = run_calque(folder, "translate pruned" + options, sources);
  EXPECT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_EQ(pruned.out, whole.out);
}

TEST(ExportCommand, AnEndingOfNoFormatIsRefusedWithTheFormats) {
  const TemporaryFolder folder;
  for (const char* name : {"out.bin", "out.safetensors", "out.GGUF"}) {
    const Outcome outcome = run_calque(folder, "export " + base + " " + name);
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(name) + ": no format has the ending ."));
    EXPECT_THAT(outcome.err, HasSubstr("NAME.gguf"));
    EXPECT_THAT(outcome.err, HasSubstr("--format hf"));
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  }
  for (const char* words : {"base-1.2", "base.v2 --format hf"}) {
    const Outcome outcome = run_calque(folder, "export " + base + " " + words);
    EXPECT_EQ(outcome.code, 0) << words << ": " << outcome.err;
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "base-1.2/config.json"));
}

}  // namespace calque
