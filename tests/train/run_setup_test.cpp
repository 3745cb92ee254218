#include "calque/train/run_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/kernels/threads.h"
#include "calque/model/lora.h"
#include "tiny_model.h"
#include "train/small_run.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunSetupTest : public testing::Test {
 protected:
  RunSetupTest() : config_(small_run(folder_)), cache_(folder_ / "cache", 2) {
    log::start(log::Verbosity::quiet);
  }
  const Tokenizer& tokenizer() const {
    static const Tokenizer loaded = Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model");
    return loaded;
  }
  std::shared_ptr<Decoder> model() const { return make_model(config_, tokenizer(), torch::kCPU); }
  std::string refusal() const {
    try {
      model();
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }
  // A base model with the configuration's architecture, whose weights are drawn from another seed.
  fs::path write_base() const {
    RunConfig other = config_;
    other.seed = 99;
    const auto decoder = make_model(other, tokenizer(), torch::kCPU);
    CheckpointContent content;
    content.weights = weight_views(*decoder);
    content.config = hf_config(decoder->config());
    content.tokenizer = tokenizer().serialized();
    write_checkpoint(folder_ / "base", content);
    return folder_ / "base";
  }

  TemporaryFolder folder_;
  RunConfig config_;
  DataCache cache_;
};

bool equal_weights(const Decoder& a, const Decoder& b) {
  return torch::equal(a.blocks[1]->feed_forward->parameters()[0], b.blocks[1]->feed_forward->parameters()[0]);
}

}  // namespace

TEST(TrainingPrecision, AutoIsBfloat16WhereTheProcessorHasInstructionsForIt) {
  TrainConfig config;
  const Precision best = has_bfloat16_instructions() ? Precision::bfloat16 : Precision::float32;
  EXPECT_EQ(training_precision(config, torch::kCPU), best);
  EXPECT_EQ(training_precision(config, torch::kCUDA), Precision::float32);
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    config.precision = precision;
    EXPECT_EQ(training_precision(config, torch::kCPU), precision);
  }
}

TEST(TrainingDevice, IsTheCpuWithoutANumberForEveryProcess) {
  for (const int rank : {0, 1})
    EXPECT_EQ(training_device({}, {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2}),
              torch::kCPU);
}

TEST_F(RunSetupTest, TheStreamHasTheSettingsOfAllSections) {
  config_.data.train.front().weight = 3;
  config_.data.max_tokens = 11;
  config_.train.batch_tokens = 222;
  config_.model.prompt = "{source} = {target}";
  config_.tokenizer.sampling = 0.25;
  config_.seed = 77;
  const BatchStreamOptions options = stream_options(config_);
  ASSERT_EQ(options.corpus.size(), 1U);
  EXPECT_EQ(options.corpus.front().weight, 3);
  EXPECT_EQ(options.max_tokens, 11);
  EXPECT_EQ(options.batch_tokens, 222);
  EXPECT_EQ(options.prompt, "{source} = {target}");
  EXPECT_EQ(options.sampling, 0.25);
  EXPECT_EQ(options.seed, 77U);
}

TEST_F(RunSetupTest, ValidationBatchesHoldEveryPairOnceThatFits) {
  std::string corpus = "a\tb\nune\t\n";  // the second has an empty side
  for (int i = 0; i < 20; ++i) corpus += "Bonjour tout le monde.\tHello everybody.\n";
  for (int i = 0; i < 3; ++i) corpus += std::string(200, 'x') + "\tlong\n";
  config_.data.valid.front().pairs = folder_.write("valid.tsv", corpus);
  config_.data.max_tokens = 50;
  config_.train.batch_tokens = 60;
  const ValidationBatches valid = validation_batches(config_, tokenizer(), cache_);
  EXPECT_EQ(valid.skipped, 4);
  EXPECT_GT(valid.batches.size(), 2U);
  int64_t pairs = 0;
  for (const Batch& batch : valid.batches) {
    EXPECT_LE(batch.rows(), 60);
    pairs += batch.pairs();
  }
  EXPECT_EQ(pairs, 21);
  // The same each time, whatever the seed.
  config_.seed = 5;
  const ValidationBatches again = validation_batches(config_, tokenizer(), cache_);
  ASSERT_EQ(again.batches.size(), valid.batches.size());
  for (size_t i = 0; i < valid.batches.size(); ++i)
    EXPECT_EQ(again.batches[i].tokens, valid.batches[i].tokens);
  config_.model.prompt = "Q {source} A {target}";
  config_.data.max_tokens = 40;
  EXPECT_NE(validation_batches(config_, tokenizer(), cache_).batches[0].tokens, valid.batches[0].tokens);
}

TEST_F(RunSetupTest, ValidationTextHasALabelOnEveryRow) {
  CorpusPart text;
  text.text = folder_.write("valid.txt", "le chat\nla maison\n");
  config_.data.valid = {text};
  const ValidationBatches valid = validation_batches(config_, tokenizer(), cache_);
  ASSERT_EQ(valid.batches.size(), 1U);
  EXPECT_EQ(valid.batches[0].labels.size(), valid.batches[0].tokens.size());
  EXPECT_EQ(valid.skipped, 0);
  config_.data.valid.clear();
  EXPECT_TRUE(validation_batches(config_, tokenizer(), cache_).batches.empty());
  EXPECT_EQ(ValidationBatches().skipped, 0);
}

TEST_F(RunSetupTest, TheLongestPairMustFitTheModelAndABatchToTheToken) {
  config_.data.max_tokens = 126;  // and <s> and <sep>
  config_.train.batch_tokens = 128;
  EXPECT_EQ(refusal(), "accepted");
  config_.train.batch_tokens = 127;
  EXPECT_EQ(refusal(),
            "train.batch_tokens=127 is too small for data.max_tokens=126, which makes sequences of up to "
            "128 tokens");
  config_.data.max_tokens = 127;
  config_.train.batch_tokens = 512;
  EXPECT_EQ(refusal(),
            "data.max_tokens=127 makes sequences of up to 129 tokens, but model.context_length=128");
}

TEST_F(RunSetupTest, AModelIsDrawnFromTheSeedAndSetUpAsConfigured) {
  config_.train.precision = Precision::float32;
  const auto one = model(), same = model();
  EXPECT_TRUE(equal_weights(*one, *same));
  EXPECT_EQ(one->config().vocabulary, tokenizer().size());
  EXPECT_FALSE(one->gradient_checkpointing);
  EXPECT_EQ(one->blocks[0]->matrices()[0].linear->products, torch::kFloat32);
  config_.seed = 2;
  config_.train.gradient_checkpointing = true;
  config_.train.precision = Precision::bfloat16;
  const auto other = model();
  EXPECT_FALSE(equal_weights(*one, *other));
  EXPECT_TRUE(other->gradient_checkpointing);
  EXPECT_EQ(other->blocks[0]->matrices()[0].linear->products, torch::kBFloat16);
}

TEST_F(RunSetupTest, ABaseModelIsLoadedAndFrozenAsConfigured) {
  config_.finetune.init_from = write_base();
  config_.tokenizer.path.clear();
  EXPECT_EQ(choose_tokenizer(config_, cache_).hash(), tokenizer().hash());
  const auto base = Checkpoint(config_.finetune.init_from).make_decoder();
  const auto whole = model();
  EXPECT_TRUE(equal_weights(*whole, *base));
  for (const auto& parameter : whole->parameters()) EXPECT_TRUE(parameter.requires_grad());

  config_.finetune.freeze_embeddings = true;
  config_.finetune.freeze_layers = 2;  // all: only the last norm is trained
  const auto frozen = model();
  int trained = 0;
  for (const auto& parameter : frozen->parameters()) trained += parameter.requires_grad();
  EXPECT_EQ(trained, 1);
  config_.finetune.freeze_layers = 3;
  EXPECT_EQ(refusal(), "model.freeze_layers=3, but the model has 2 layers");

  config_.finetune.freeze_layers = 1;
  config_.finetune.lora.rank = 2;
  config_.finetune.lora.dropout = 0.5;
  config_.finetune.lora.alpha = 6;
  config_.finetune.lora.target_modules = {"down"};
  const auto adapted = model();
  EXPECT_FALSE(adapted->blocks[0]->matrices()[3].linear->adapter.has_value());
  EXPECT_FALSE(adapted->blocks[1]->matrices()[0].linear->adapter.has_value());
  const auto& adapter = adapted->blocks[1]->matrices()[3].linear->adapter;
  ASSERT_TRUE(adapter.has_value());
  EXPECT_EQ(adapter->down.size(0), 2);
  EXPECT_EQ(adapter->scale, 3);
  EXPECT_EQ(adapter->dropout, 0.5);
  config_.finetune.freeze_layers = 2;
  EXPECT_THAT(refusal(), HasSubstr("leaves no layer for the adapters"));
}

TEST_F(RunSetupTest, BaseModelsThatCannotBeUsedAreRefusedByTheirKey) {
  const fs::path base = write_base();
  config_.finetune.init_from = base;
  config_.model.layers = 3;
  EXPECT_EQ(refusal(), "model.layers=3, but the base model " + base.string() + " has 2");
  config_.model.layers = 2;
  folder_.write("base/model.safetensors.index.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("a sharded checkpoint"));
  fs::remove(base / "model.safetensors.index.json");
  fs::remove(base / "model.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("adapters without their base model"));
  fs::remove(base / "config.json");
  EXPECT_THAT(refusal(), HasSubstr("no such checkpoint"));
}

TEST_F(RunSetupTest, EightBitBasesNeedTheProcessor) {
  config_.finetune.base_precision = WeightPrecision::int8;
  EXPECT_EQ(refusal(), "accepted");
  EXPECT_THROW(make_model(config_, tokenizer(), torch::kCUDA), UserError);
}

TEST(TrainedParameters, AreNamedWithTheirLearningRatesAndTheRowsOfFusedMatrices) {
  ModelConfig model = tiny_config();
  model.tied_embeddings = false;
  const auto decoder = make_decoder(model);
  FinetuneConfig config;
  config.init_from = "somewhere";
  config.base_lr_scale = 0.1;
  config.layer_lr_decay = 0.5;
  std::vector<std::string> names;
  std::map<std::string, TrainedParameter> found;
  for (const TrainedParameter& parameter : trained_parameters(*decoder, config)) {
    names.push_back(parameter.name);
    found[parameter.name] = parameter;
  }
  EXPECT_EQ(names.size(), decoder->parameters().size());
  EXPECT_EQ(names.front(), "output");
  EXPECT_EQ(names[1], "embedding.weight");
  EXPECT_EQ(names.back(), "norm.weight");
  EXPECT_DOUBLE_EQ(found["output"].lr_scale, 0.1);
  EXPECT_DOUBLE_EQ(found["norm.weight"].lr_scale, 0.1);
  EXPECT_DOUBLE_EQ(found["block_1.attention.qkv.weight"].lr_scale, 0.1);
  EXPECT_DOUBLE_EQ(found["block_0.attention.qkv.weight"].lr_scale, 0.05);
  EXPECT_DOUBLE_EQ(found["embedding.weight"].lr_scale, 0.025);
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(found["block_0.attention.qkv.weight"].part_rows, (Rows{16, 8, 8}));
  EXPECT_EQ(found["block_0.attention.output.weight"].part_rows, (Rows{16}));
  EXPECT_EQ(found["block_1.feed_forward.up.weight"].part_rows, (Rows{24, 24}));
  EXPECT_EQ(found["block_1.attention_norm.weight"].part_rows, Rows{});
  EXPECT_EQ(found["output"].part_rows, Rows{});
  EXPECT_EQ(TrainedParameter().lr_scale, 1);
}

TEST(TrainedParameters, AdaptersLearnAtTheFullRateAndFrozenOnesNotAtAll) {
  const auto decoder = make_decoder(tiny_config());
  FinetuneConfig config;
  config.base_lr_scale = 0.1;  // without a base it has no effect
  for (const TrainedParameter& parameter : trained_parameters(*decoder, config))
    EXPECT_EQ(parameter.lr_scale, 1) << parameter.name;
  config.init_from = "somewhere";
  add_adapters(*decoder, {2, 1, 0, {"qkv"}, 1}, 1, WeightPrecision::float32);
  const auto adapters = trained_parameters(*decoder, config);
  ASSERT_EQ(adapters.size(), 2U);
  for (const TrainedParameter& parameter : adapters) {
    EXPECT_THAT(parameter.name, HasSubstr("block_1.attention.qkv.adapter_"));
    EXPECT_EQ(parameter.lr_scale, 1);
    EXPECT_TRUE(parameter.part_rows.empty());
  }
}

}  // namespace calque
