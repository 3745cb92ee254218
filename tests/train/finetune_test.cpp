// Going on from a model that exists: full fine-tuning, adapters, freezing, learning rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/decode/translator.h"
#include "calque/model/batch_layout.h"
#include "calque/model/lora.h"
#include "calque/runs/model_source.h"
#include "calque/train/run_setup.h"
#include "calque/train/training_loop.h"
#include "tiny_model.h"
#include "train/small_run.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

class FinetuneTest : public testing::Test {
 protected:
  FinetuneTest() {
    log::start(log::Verbosity::quiet);
    RunConfig base = small_run(folder_);
    base.run = "base";
    base.model.attention = AttentionKind::causal;
    base.train.validate_sentences = 0;
    train_run(base);
    base_ = folder_ / "runs/base/checkpoints/last";
  }
  TrainingResult train_run(const RunConfig& config, bool resume = false) {
    TrainingOptions options;
    options.runs = folder_ / "runs";
    options.resume = resume;
    return train(config, options);
  }
  // As a person would write it: a file with what differs from the base.
  RunConfig tuned(const std::string& run, const std::string& model) const {
    const std::string corpus = (source_folder() / "data/everyday").string();
    const auto file = folder_.write(
        run + ".yaml", "run: " + run + "\ndata: {train: " + corpus + "/natural-train.tsv, valid: " + corpus +
                           "/natural-test.tsv, max_tokens: 100}\nmodel: {init_from: " + base_.string() +
                           model +
                           "}\ntrain: {batch_tokens: 512, steps: 12, warmup_steps: 2, learning_rate: 3e-3, "
                           "checkpoint_every: 6, validate_every: 0, validate_sentences: 0, threads: 2}\n");
    return read_run_config(file, {});
  }
  std::shared_ptr<Decoder> result_of(const std::string& run) const {
    return Checkpoint(folder_ / "runs" / run / "checkpoints/last").make_decoder();
  }

  TemporaryFolder folder_;
  fs::path base_;
};

double change(const Decoder& a, const Decoder& b, const std::string& name) {
  return (a.named_parameters()[name] - b.named_parameters()[name]).abs().max().item<double>();
}

}  // namespace

TEST_F(FinetuneTest, TheBasesArchitectureAndTokenizerAreTakenOverAndKeysBesideItWin) {
  const RunConfig config = tuned("plain", ", attention: prefix");
  EXPECT_EQ(config.model.hidden_size, 32);
  EXPECT_EQ(config.model.layers, 2);
  EXPECT_EQ(config.model.attention, AttentionKind::prefix);
  EXPECT_EQ(tuned("causal", "").model.attention, AttentionKind::causal);
  const auto before = Checkpoint(base_).make_decoder();
  train_run(config);
  const auto after = result_of("plain");
  EXPECT_EQ(after->config().attention, AttentionKind::prefix);
  EXPECT_GT(change(*before, *after, "block_1.attention.qkv.weight"), 1e-4);
  EXPECT_LT(change(*before, *after, "block_1.attention.qkv.weight"),
            0.2);  // it went on, it did not begin anew
  EXPECT_EQ(read_file(folder_ / "runs/plain/tokenizer.model"), read_file(base_ / "tokenizer.model"));
}

TEST_F(FinetuneTest, WhatIsFrozenStaysAndWhatIsSlowedMovesLess) {
  const auto before = Checkpoint(base_).make_decoder();
  train_run(tuned("frozen", ", freeze_embeddings: true, freeze_layers: 1"));
  const auto frozen = result_of("frozen");
  EXPECT_EQ(change(*before, *frozen, "embedding.weight"), 0);
  EXPECT_EQ(change(*before, *frozen, "block_0.feed_forward.up.weight"), 0);
  EXPECT_GT(change(*before, *frozen, "block_1.feed_forward.up.weight"), 1e-4);
  train_run(tuned("full", ""));
  train_run(tuned("slow", ", base_lr_scale: 0.1, layer_lr_decay: 0.5"));
  const auto full = result_of("full"), slow = result_of("slow");
  EXPECT_LT(change(*before, *slow, "block_1.feed_forward.up.weight"),
            change(*before, *full, "block_1.feed_forward.up.weight") / 3);
  EXPECT_LT(change(*before, *slow, "block_0.feed_forward.up.weight"),
            change(*before, *slow, "block_1.feed_forward.up.weight") * 0.9);
}

TEST_F(FinetuneTest, FrozenLayersHaveNoAdapters) {
  const auto before = Checkpoint(base_).make_decoder();
  const TrainingResult result =
      train_run(tuned("upper", ", freeze_layers: 1, lora: {rank: 4, target_modules: [down]}"));
  EXPECT_EQ(result.trained_parameters, 4 * (48 + 32));
  const auto after = result_of("upper");
  EXPECT_EQ(change(*before, *after, "block_0.feed_forward.down.weight"), 0);
  EXPECT_GT(change(*before, *after, "block_1.feed_forward.down.weight"), 1e-4);
}

TEST_F(FinetuneTest, AdaptersAreSavedAloneStandOnTheirBaseAndResumeInTheSameBits) {
  const RunConfig config = tuned("lora", ", lora: {rank: 4, dropout: 0.1, target_modules: [qkv, down]}");
  const TrainingResult result = train_run(config);
  EXPECT_EQ(result.trained_parameters, 2 * 4 * ((32 + 96) + (48 + 32)));
  const fs::path checkpoint = folder_ / "runs/lora/checkpoints/last";
  EXPECT_FALSE(fs::exists(checkpoint / "model.safetensors"));
  const auto before = Checkpoint(base_).make_decoder(), after = result_of("lora");
  EXPECT_GT(change(*before, *after, "block_0.attention.qkv.weight"), 1e-4);
  EXPECT_EQ(change(*before, *after, "block_0.feed_forward.up.weight"), 0);
  EXPECT_EQ(after->parameter_count(), before->parameter_count());  // merged

  RunConfig half = config;
  half.run = "stopped";
  half.train.steps = 6;
  half.train.schedule = ScheduleKind::constant;
  RunConfig whole = half;
  whole.run = "straight";
  whole.train.steps = 12;
  whole.train.decay_fraction = half.train.decay_fraction = 0;
  train_run(half);
  RunConfig on = whole;
  on.run = "stopped";
  train_run(on, true);
  train_run(whole);
  EXPECT_EQ(read_file(folder_ / "runs/stopped/checkpoints/last/adapters.safetensors"),
            read_file(folder_ / "runs/straight/checkpoints/last/adapters.safetensors"));

  // The run keeps its base model: it works where the original is gone. Another one in its place is noticed.
  fs::rename(folder_ / "runs/base", folder_ / "runs/moved");
  EXPECT_NO_THROW(result_of("lora"));
  const fs::path kept = folder_ / "runs/lora/base/model.safetensors";
  std::string other = read_file(kept);
  other.back() = static_cast<char>(other.back() ^ 1);
  fs::remove(kept);  // it may be a hard link
  write_file(kept, other);
  EXPECT_THROW(result_of("lora"), UserError);
}

TEST_F(FinetuneTest, RunsOnOneBaseShareItInAServerAndTranslateAsAlone) {
  SharedModels shared;
  std::vector<std::unique_ptr<Translator>> served;
  for (const std::string run : {"one", "two"}) {
    train_run(tuned(
        run, ", lora: {rank: 4, target_modules: [" + std::string(run == "one" ? "qkv" : "down") + "]}"));
    const ModelSource source = find_model(folder_ / "runs", run);
    served.push_back(shared.open(source, WeightPrecision::float32));
    const auto alone = open_translator(source);
    for (const char* line : {"Le chat dort.", "Où est la gare ?"}) {
      const Translation expected = alone->translate(line), found = served.back()->translate(line);
      EXPECT_EQ(found.text(), expected.text());
      EXPECT_NEAR(found.best.front().score, expected.best.front().score, 1e-3);
    }
  }
  const auto norm = [](const Translator& one) { return one.decoder().norm->weight.data_ptr(); };
  EXPECT_EQ(norm(*served[0]), norm(*served[1]));
}

TEST_F(FinetuneTest, ABaseInLowerPrecisionTrainsNearlyTheSame) {
  train_run(tuned("wide", ", lora: {rank: 4}"));
  const auto wide = result_of("wide");
  for (const std::string precision : {"bfloat16", "int8"}) {
    train_run(tuned(precision, ", lora: {rank: 4}, base_precision: " + precision));
    const double differs = change(*wide, *result_of(precision), "block_0.attention.qkv.weight");
    EXPECT_LT(differs, 0.02);
    EXPECT_GT(differs, 0);
  }
}

TEST_F(FinetuneTest, RecomputingGivesTheSameBits) {
  for (const char* model : {", dropout: 0.2", ", freeze_layers: 1, lora: {rank: 2, dropout: 0.1}"}) {
    const std::string name = std::string(model).find("lora") == std::string::npos ? "full" : "lora";
    train_run(tuned(name, model));
    RunConfig again = tuned(name + "-again", model);
    again.train.gradient_checkpointing = true;
    train_run(again);
    const char* file = name == "lora" ? "adapters.safetensors" : "model.safetensors";
    EXPECT_EQ(read_file(folder_ / "runs" / name / "checkpoints/last" / file),
              read_file(folder_ / "runs" / (name + "-again") / "checkpoints/last" / file))
        << name;
  }
}

TEST_F(FinetuneTest, APromptIsTrainedKeptAndTranslatedWith) {
  RunConfig config = tuned("prompted", ", prompt: \"French: {source} English: {target}\"");
  train_run(config);
  const Checkpoint checkpoint(folder_ / "runs/prompted/checkpoints/last");
  EXPECT_EQ(checkpoint.config().prompt, "French: {source} English: {target}");
  const Translator translator(checkpoint.make_decoder(), checkpoint.tokenizer(), {});
  const Tokenizer& tokenizer = translator.tokenizer();
  std::vector<int32_t> begin = tokenizer.encode("French: ");
  begin.insert(begin.begin(), tokenizer.begin_id());
  EXPECT_EQ(translator.format().begin, begin);
  EXPECT_EQ(translator.format().separator, tokenizer.encode(" English: "));
  for (const char* prompt : {"{source}", "{target} {source}", "{source}{target}", "{source} = {target} ."})
    EXPECT_THROW(pair_format(tokenizer, prompt), UserError) << prompt;
}

// A base has seen other texts end with </s>, or none: after fine-tuning a translation must end by itself.
TEST_F(FinetuneTest, AFineTunedModelLearnsToStop) {
  for (const char* model : {"", ", lora: {rank: 8}"}) {
    RunConfig config = tuned("stops", model);
    const auto pairs =
        folder_.write("few.tsv", "Bonjour.\tHello.\nMerci.\tThank you.\nIl dort.\tHe is asleep.\n");
    config.data.train = config.data.valid = {CorpusPart{}};
    config.data.train[0].pairs = config.data.valid[0].pairs = pairs;
    config.train.steps = 150;
    config.train.learning_rate = 1e-2;
    TrainingOptions options;
    options.runs = folder_ / "runs";
    options.fresh = true;
    train(config, options);
    const Checkpoint checkpoint(folder_ / "runs/stops/checkpoints/last");
    const Translator translator(checkpoint.make_decoder(), checkpoint.tokenizer(), {});
    const Translation translation = translator.translate("Il dort.");
    EXPECT_TRUE(translation.best.front().complete) << model;
    if (*model == '\0') {
      EXPECT_EQ(translation.text(), "He is asleep.");
    }
  }
}

TEST_F(FinetuneTest, ContradictionsAreNamed) {
  EXPECT_THROW(tuned("a", ", lora: {rank: 4, target_modules: [kqv]}"), UserError);
  EXPECT_THROW(tuned("b", ", base_precision: bfloat16"), UserError);
  EXPECT_THROW(train_run(tuned("all", ", freeze_layers: 2, lora: {rank: 4}")), UserError);
  RunConfig config = small_run(folder_);
  config.finetune.lora.rank = 4;
  EXPECT_THROW(check_finetune(config.finetune), UserError);
  RunConfig missing = tuned("c", "");
  missing.finetune.init_from = folder_ / "nowhere";
  EXPECT_THROW(train_run(missing), UserError);
}

TEST(Lora, MergedEqualsBeside) {
  Decoder decoder(tiny_config());
  decoder.initialise(1);
  add_adapters(decoder, {3, 1.5, 0, {"qkv", "output", "up", "down"}}, 1, WeightPrecision::float32);
  const torch::NoGradGuard no_gradients;
  for (const auto& parameter : decoder.named_parameters()) {
    if (parameter.key().find("adapter_up") != std::string::npos) parameter.value().normal_(0, 0.3);
  }
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11, 12}, std::vector<int32_t>{20, 21});
  const auto merged = merge_adapters(decoder);
  EXPECT_TRUE(has_adapters(decoder));
  EXPECT_FALSE(has_adapters(*merged));
  const Layout layout = batch_layout(batch, ModelConfig{});
  const auto tokens = index_tensor(batch.tokens);
  EXPECT_LT((decoder.logits(tokens, layout) - merged->logits(tokens, layout)).abs().max().item<double>(),
            1e-5);
}

}  // namespace calque
