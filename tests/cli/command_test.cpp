#include "calque/cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

}  // namespace

TEST(Command, HelpFitsOnOneScreen) {
  const TemporaryFolder folder;
  const Outcome help = run_calque(folder, "--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 40);
  EXPECT_THAT(help.out, HasSubstr("data "));
  EXPECT_EQ(help.err, "");
}

TEST(Command, VersionNamesTheLibrariesAndTheMachine) {
  const TemporaryFolder folder;
  const Outcome version = run_calque(folder, "--version");
  EXPECT_EQ(version.code, 0);
  for (const char* word : {"calque ", "LibTorch 2.13", "SentencePiece ", "CPU: ", "cores", "bfloat16: "})
    EXPECT_THAT(version.out, HasSubstr(word));
}

// OpenMP would bind the main thread to one core, and our own threads would inherit that.
TEST(Command, OpenMPsBindingOfThreadsLeavesAllCores) {
  const TemporaryFolder folder;
  const Outcome plain = run_calque(folder, "--version");
  for (const auto& [name, value] :
       {std::pair("OMP_PROC_BIND", "true"), {"OMP_PLACES", "cores"}, {"GOMP_CPU_AFFINITY", "0"}}) {
    setenv(name, value, 1);
    EXPECT_EQ(run_calque(folder, "--version").out, plain.out) << name;
    unsetenv(name);
  }
}

TEST(Command, MistakesOnTheCommandLineSayWhatWasMeant) {
  const TemporaryFolder folder;
  const Outcome subcommand = run_calque(folder, "tokeniser");
  EXPECT_EQ(subcommand.code, 2);
  EXPECT_THAT(subcommand.err, HasSubstr("tokeniser: no such subcommand; did you mean tokenizer?"));
  const Outcome option = run_calque(folder, "data check x.yaml --jsn");
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("--jsn: no such option; did you mean --json?"));
  EXPECT_THAT(option.err, HasSubstr("`calque data check --help`"));
  EXPECT_EQ(run_calque(folder, "").code, 2);
  EXPECT_EQ(run_calque(folder, "data check").code, 2);
  const Outcome missing = run_calque(folder, "data check none.yaml");
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "error: none.yaml: No such file or directory\n");
}

TEST(Command, TheValueOfAnOptionIsNoSubcommand) {
  const TemporaryFolder folder;
  for (const auto& [words, meant] : std::vector<std::pair<std::string, std::string>>{
           {"--runs runs trian x", "trian: no such subcommand; did you mean train?"},
           {"--runs=runs trian x", "trian: no such subcommand; did you mean train?"},
           {"--runs config config shwo", "shwo: no such subcommand; did you mean show?"},
           {"data --runs x chek", "chek: no such subcommand; did you mean check?"},
           {"--verson", "--verson: no such option; did you mean --version?"}}) {
    const Outcome outcome = run_calque(folder, words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(meant)) << words;
  }
}

TEST(Command, OnlyWhatRunsOnSeveralProcessesIsLaunched) {
  const TemporaryFolder folder;
  for (const auto& [words, meant] : std::vector<std::pair<std::string, std::string>>{
           {"launch -n 2 data check a.yaml", "`calque data check` runs in one process"},
           {"launch -n 2 bench decode demo", "`calque bench decode` runs in one process"},
           {"launch -n 2 train a.yaml --dry-run", "`calque train --dry-run` runs in one process"},
           {"launch -n 2 --max-restarts 1 translate demo", "a translation cannot be started again"},
           {"launch -n 2", "the command is missing"}}) {
    const Outcome outcome = run_calque(folder, words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(meant)) << words;
  }
}

TEST(Command, AnOptionThatIsAConfigurationKeyIsAnsweredWithTheOverride) {
  const TemporaryFolder folder;
  folder.write("a.yaml", "run: a\n");
  for (const auto& [words, meant] : std::vector<std::pair<std::string, std::string>>{
           {"train a.yaml --steps 30", "--steps: no such option; did you mean train.steps=30?"},
           {"train a.yaml --steps=30", "--steps=30: no such option; did you mean train.steps=30?"},
           {"train a.yaml --batch-tokens 64", "did you mean train.batch_tokens=64?"},
           {"train a.yaml --train.steps 30", "did you mean train.steps=30?"},
           {"train --steps", "did you mean train.steps=VALUE?"},
           {"resume a --steps 30", "did you mean train.steps=30?"},
           {"train a --steps 30", "did you mean train.steps=30?"},
           {"train a.yaml --frsh", "did you mean --fresh?"},
           {"runs --steps 30", "--steps: no such option\n"}}) {
    const Outcome outcome = run_calque(folder, words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(meant)) << words;
  }
}

TEST(Command, EveryCommandThatRunsAModelHasADevice) {
  const TemporaryFolder folder;
  for (const char* command :
       {"translate", "evaluate", "compare", "score", "serve", "explore", "bench decode", "selftest"})
    EXPECT_THAT(run_calque(folder, std::string(command) + " --help").out, HasSubstr("--device")) << command;
}

TEST(SelftestCommand, RefusesADeviceThatIsNotThere) {
  const TemporaryFolder folder;
  for (const char* device : {"gpu", "meta"}) {
    const Outcome refused = run_calque(folder, std::string("selftest --device ") + device);
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr(std::string("--device=") + device + ": "));
  }
}

TEST(RunsCommand, ListIsTheSameAsNoSubcommand) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "runs/one");
  folder.write("runs/one/config.yaml", "run: one\n");
  for (const char* words : {"runs", "runs list"}) {
    const Outcome list = run_calque(folder, words);
    EXPECT_EQ(list.code, 0) << list.err;
    EXPECT_THAT(list.out, testing::MatchesRegex("run +state.*\none +empty.*\n"));
  }
  EXPECT_EQ(json::parse(run_calque(folder, "runs list --json").out)[0]["name"], "one");
}

TEST(Command, EveryExampleInHelpStartsWithAKnownSubcommand) {
  const TemporaryFolder folder;
  for (const char* command : {"train",        "resume",          "translate",        "evaluate",
                              "compare",      "score",           "score-text",       "import",
                              "export",       "inspect",         "explore",          "data check",
                              "data batches", "tokenizer train", "tokenizer encode", "tokenizer decode",
                              "config show",  "config schema",   "config keys",      "completion",
                              "man"}) {
    const Outcome help = run_calque(folder, std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Example:")) << command;
    EXPECT_THAT(help.out, HasSubstr("calque " + std::string(command))) << command;
  }
}

TEST(Command, AClosedPipeEndsQuietly) {
  const TemporaryFolder folder;
  const Outcome piped = run_calque(folder, "config schema | head -n 1; exit ${PIPESTATUS:-0}");
  EXPECT_EQ(piped.err, "");
  EXPECT_THAT(run_calque(folder, "config schema > /dev/full; echo $? > code; exit 0").err, HasSubstr(""));
  EXPECT_EQ(read_file(folder / "code"), "1\n");
}

TEST(DataCommand, CheckReportsAsTextAndJson) {
  const TemporaryFolder folder;
  folder.write("a.tsv", "Je suis là.\tI am here.\nsans tabulation\n");
  folder.write("a.yaml", "data: {train: a.tsv}\n");
  const Outcome text = run_calque(folder, "data check a.yaml");
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.out, HasSubstr("missing-tab"));
  EXPECT_THAT(text.out, HasSubstr("a.tsv:2: sans tabulation"));
  const Outcome as_json = run_calque(folder, "data check a.yaml --json");
  EXPECT_EQ(as_json.code, 2);
  const json report = json::parse(as_json.out);
  EXPECT_EQ(report["pairs"], 1);
  EXPECT_EQ(report["findings"][0]["kind"], "missing-tab");
  EXPECT_EQ(report["findings"][0]["fatal"], true);
  EXPECT_EQ(report["findings"][0]["examples"][0],
            json({{"file", "a.tsv"}, {"line", 2}, {"text", "sans tabulation"}}));
  folder.write("a.tsv", "Je suis là.\tI am here.\n\n");
  EXPECT_EQ(run_calque(folder, "data check a.yaml tokenizer.vocabulary=275").code, 0);
}

TEST(DataCommand, BatchesAreMadeAndReusedFromTheCache) {
  const TemporaryFolder folder;
  folder.write("a.yaml", "data: {train: '" CALQUE_SOURCE_FOLDER
                         "/data/everyday/natural-train.tsv'}\ntokenizer: {vocabulary: 600}\n");
  const Outcome first = run_calque(folder, "data batches a.yaml --json train.batch_tokens=512");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(json::parse(first.out)["pairs"], 560);
  EXPECT_THAT(first.err, HasSubstr("training a bpe tokenizer"));
  const Outcome second = run_calque(folder, "data batches a.yaml --json train.batch_tokens=512");
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(json::parse(first.out)["tokens"], json::parse(second.out)["tokens"]);
}

TEST(TokenizerCommand, TrainsAndFiltersBothWays) {
  const TemporaryFolder folder;
  const Outcome train = run_calque(folder, "tokenizer train -o t.model " CALQUE_SOURCE_FOLDER
                                           "/data/everyday/natural-train.tsv --vocabulary 500");
  EXPECT_EQ(train.code, 0) << train.err;
  const std::string text = "Il fait beau.\n\nÇa va ? 🙂\n";
  const Outcome ids = run_calque(folder, "tokenizer encode t.model", text);
  EXPECT_EQ(std::count(ids.out.begin(), ids.out.end(), '\n'), 3);
  EXPECT_EQ(run_calque(folder, "tokenizer decode t.model", ids.out).out, text);
  EXPECT_THAT(run_calque(folder, "tokenizer encode --pieces t.model", text).out, HasSubstr("▁"));
  const Outcome bad = run_calque(folder, "tokenizer decode t.model", "1 2\n3 x\n");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("stdin:2: \"x\" is not a token id"));
  EXPECT_EQ(run_calque(folder, "tokenizer encode t.model", "caf\xe9\n").code, 2);
}

TEST(ConfigCommand, ShowsResolvedAndRefusesUnknownKeys) {
  const TemporaryFolder folder;
  folder.write("a.yaml", "run: a\ntokenizer: {vocabulary: 4k}\n");
  const Outcome shown = run_calque(folder, "config show a.yaml seed=7");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("vocabulary: 4000"));
  EXPECT_THAT(shown.out, HasSubstr("seed: 7"));
  folder.write("b.yaml", shown.out);
  EXPECT_EQ(run_calque(folder, "config show b.yaml").out, shown.out);
  folder.write("c.yaml", "run: a\ntokenizer:\n  vocabularry: 4k\n");
  const Outcome refused = run_calque(folder, "config show c.yaml");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "error: c.yaml:3: tokenizer.vocabularry: no such key; did you mean tokenizer.vocabulary?\n");
  EXPECT_TRUE(json::parse(run_calque(folder, "config schema").out).contains("properties"));
}

TEST(ConfigCommand, TheTableInTheDocsIsTheCodes) {
  const TemporaryFolder folder;
  EXPECT_THAT(read_file(source_folder() / "docs/configuration.md"),
              HasSubstr(run_calque(folder, "config keys").out))
      << "docs/configuration.md is behind: paste `calque config keys` into it";
}

TEST(ConfigCommand, EveryShippedConfigurationLoads) {
  const TemporaryFolder folder;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() / "configs")) {
    const Outcome shown = run_calque(folder, "config show '" + entry.path().string() + "'");
    EXPECT_EQ(shown.code, 0) << shown.err;
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(CompletionCommand, CompletesSubcommandsOptionsKeysAndRuns) {
  const TemporaryFolder folder;
  for (const char* name : {"first", "comparisons"})
    std::filesystem::create_directories(folder.path() / "runs" / name);
  folder.write("runs/first/config.yaml", "");
  EXPECT_EQ(run_calque(folder, "complete -- tok").out, "tokenizer\n");
  EXPECT_EQ(run_calque(folder, "complete -- data ''").out, "check\nbatches\nprepare\n");
  EXPECT_THAT(run_calque(folder, "complete -- data check a.yaml --ex").out, HasSubstr("--examples"));
  EXPECT_EQ(run_calque(folder, "complete -- data check a.yaml tokenizer.voc").out, "tokenizer.vocabulary=\n");
  EXPECT_EQ(run_calque(folder, "complete -- data check conf").out, "");
  EXPECT_EQ(run_calque(folder, "complete -- train a.yaml run=f").out, "run=first\n");
  EXPECT_EQ(run_calque(folder, "complete -- train a.yaml run = f").out, "first\n");
  EXPECT_EQ(run_calque(folder, "complete -- train a.yaml model.attention=p").out, "model.attention=prefix\n");
  EXPECT_EQ(run_calque(folder, "complete -- train a.yaml model.attention =").out, "prefix\ncausal\n");
  EXPECT_EQ(run_calque(folder, "complete -- train a.yaml model.attention = c").out, "causal\n");
  EXPECT_EQ(run_calque(folder, "complete -- train a.yaml model.qk_norm=t").out, "model.qk_norm=true\n");
  EXPECT_EQ(run_calque(folder, "complete -- translate first --precision b").out, "bfloat16\n");
  EXPECT_EQ(run_calque(folder, "complete -- translate ''").out, "first\n");
  EXPECT_EQ(run_calque(folder, "complete -- explore single").out, "single-head\n");
  EXPECT_EQ(run_calque(folder, "complete -- explore trained --model f").out, "first\n");
  EXPECT_EQ(run_calque(folder, "complete -- completion z").out, "zsh\n");
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_GT(run_calque(folder, std::string("completion ") + shell).out.size(), 100u);
  EXPECT_EQ(run_calque(folder, "completion tcsh").code, 2);
}

TEST(ManCommand, PageHasEverySubcommand) {
  const TemporaryFolder folder;
  const std::string page = run_calque(folder, "man").out;
  for (const char* part : {".TH CALQUE 1", "calque data check", "calque tokenizer train", "EXIT STATUS"})
    EXPECT_THAT(page, HasSubstr(part));
}

}  // namespace calque
