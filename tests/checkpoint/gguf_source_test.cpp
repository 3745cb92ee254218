// GGUF files as sources: what is read from their metadata, and what they are refused for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/checkpoint/formats.h"
#include "calque/checkpoint/gguf.h"
#include "calque/checkpoint/import.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

class GgufSourceTest : public testing::Test {
 protected:
  GgufSourceTest() {
    config_ = tiny_config();
    config_.attention = AttentionKind::causal;
    config_.head_size = 6;
    config_.norm_epsilon = 0.25;  // exact in 32 bits
    config_.rope_theta = 5000;
    config_.context_length = 77;
    use(config_);
  }

  // A file of a model with this configuration, to be changed.
  void use(const ModelConfig& config) {
    const auto decoder = make_decoder(config);
    metadata_ = gguf_metadata(config, Tokenizer::from_bytes(tokenizer_with_40_pieces(), "t"), "name");
    tensors_.clear();
    for (const auto& [name, tensor] : gguf_tensors(*decoder)) tensors_.emplace_back(name, tensor.clone());
  }
  ImportSource open() const {
    write_gguf(folder_ / "m.gguf", metadata_, tensors_, *find_block_type("F32"));
    return open_import_source(folder_ / "m.gguf");
  }
  std::string error() const {
    return refusal([&] { open(); });
  }
  torch::Tensor& tensor(const std::string& name) {
    for (auto& [known, value] : tensors_) {
      if (known == name) return value;
    }
    throw std::runtime_error(name);
  }

  TemporaryFolder folder_;
  ModelConfig config_;
  ordered_json metadata_;
  NamedTensors tensors_;
};

ModelConfig tiny_gemma() {
  ModelConfig gemma = tiny_config();
  gemma.layers = 2;
  gemma.sliding_window = 5;
  gemma.layer_types.assign(6, LayerType::sliding_attention);
  gemma.layer_types.back() = LayerType::full_attention;
  apply_architecture(gemma, Architecture::gemma3);
  gemma.attention = AttentionKind::causal;
  return gemma;
}

}  // namespace

TEST_F(GgufSourceTest, TheConfigurationIsReadFromTheMetadata) {
  const ImportSource source = open();
  EXPECT_EQ(source.format, "GGUF file");
  EXPECT_EQ(source.architecture, "llama");
  EXPECT_EQ(source.path, folder_ / "m.gguf");
  EXPECT_TRUE(source.problems.empty());
  EXPECT_EQ(describe_model(source.config), describe_model(config_));
  EXPECT_EQ(source.config.head_size, 6);
  EXPECT_EQ(source.tensors.at("model.norm.weight").stored_as, "output_norm.weight, F32");
  EXPECT_EQ(source.tokenizer_kind, "SentencePiece, from the GGUF metadata");
  EXPECT_NO_THROW(load_decoder(source));
}

TEST_F(GgufSourceTest, AnUntiedModelHasItsOwnOutputMatrix) {
  config_.tied_embeddings = false;
  use(config_);
  const ImportSource source = open();
  EXPECT_FALSE(source.config.tied_embeddings);
  EXPECT_NO_THROW(load_decoder(source));
}

TEST_F(GgufSourceTest, OptionalKeysHaveLlamaCppsDefaults) {
  config_.kv_heads = 0;
  config_.head_size = 0;
  use(config_);
  for (const char* key : {"attention.head_count_kv", "attention.layer_norm_rms_epsilon", "rope.freq_base",
                          "attention.key_length"})
    metadata_.erase(std::string("llama.") + key);
  const ModelConfig read = open().config;
  EXPECT_EQ(read.kv_heads, 4);
  EXPECT_EQ(read.norm_epsilon, 1e-5);
  EXPECT_EQ(read.rope_theta, 10000);
  EXPECT_EQ(read.head_size, 0);
  metadata_["llama.attention.key_length"] = 4;  // what follows from the hidden size
  EXPECT_EQ(open().config.head_size, 0);
}

TEST_F(GgufSourceTest, SizesArePositiveIntegersUpToAHundredMillion) {
  for (const char* key :
       {"block_count", "embedding_length", "attention.head_count", "feed_forward_length", "context_length"}) {
    const ordered_json before = metadata_;
    const std::string name = std::string("llama.") + key;
    for (const ordered_json& bad :
         {ordered_json(0), ordered_json(-1), ordered_json(1.5), ordered_json("4")}) {
      metadata_[name] = bad;
      EXPECT_EQ(error(), (folder_ / "m.gguf").string() + ": " + name + ": expected a positive integer")
          << bad;
    }
    metadata_.erase(name);
    EXPECT_THAT(error(), HasSubstr(name)) << key;
    metadata_ = before;
  }
  metadata_["llama.context_length"] = 100'000'000;
  EXPECT_EQ(open().config.context_length, 100'000'000);
  metadata_["llama.context_length"] = 100'000'001;
  EXPECT_THAT(error(), HasSubstr("expected a positive integer"));
  metadata_["llama.context_length"] = 1;
  EXPECT_EQ(open().config.context_length, 1);
}

TEST_F(GgufSourceTest, ThereAreNoMoreLayersThanTensors) {
  metadata_["llama.block_count"] = tensors_.size();
  EXPECT_EQ(error(), "accepted");
  metadata_["llama.block_count"] = tensors_.size() + 1;
  EXPECT_THAT(error(), HasSubstr("layers, but only 20 tensors were found"));
}

TEST_F(GgufSourceTest, TheEmbeddingGivesTheVocabularyAndMustBeAMatrix) {
  tensor("token_embd.weight") = torch::zeros({41, 16});
  EXPECT_EQ(open().config.vocabulary, 41);
  tensor("token_embd.weight") = torch::zeros({41});
  EXPECT_THAT(error(), HasSubstr("token_embd.weight is missing or is not a matrix"));
  std::erase_if(tensors_, [](const auto& one) { return one.first == "token_embd.weight"; });
  EXPECT_THAT(error(), HasSubstr("token_embd.weight is missing or is not a matrix"));
}

TEST_F(GgufSourceTest, RowsOfQueriesAndKeysMustDivideAmongTheHeads) {
  tensor("blk.1.attn_q.weight") = torch::zeros({20, 16});  // four heads of five rows: no halves
  EXPECT_THAT(error(), HasSubstr("blk.1.attn_q.weight: its rows cannot be divided among 4 heads"));
  use(config_);
  tensor("blk.0.attn_k.weight") = torch::zeros({6, 16});
  EXPECT_THAT(error(), HasSubstr("blk.0.attn_k.weight: its rows cannot be divided among 2 heads"));
  use(config_);
  tensor("blk.0.attn_k.weight") = torch::zeros({12});
  EXPECT_THAT(error(), HasSubstr("blk.0.attn_k.weight"));
}

TEST_F(GgufSourceTest, UnknownTensorsAreListedButForThoseThatMayBeThere) {
  tensors_.emplace_back("blk.0.extra.weight", torch::zeros({3}));
  tensors_.emplace_back("output.weight", torch::zeros({40, 16}));
  const ImportSource source = open();
  EXPECT_TRUE(source.tensors.contains("(unknown) blk.0.extra.weight"));
  EXPECT_TRUE(source.tensors.contains("lm_head.weight"));
  const Inspection found = inspect_model(folder_ / "m.gguf");
  EXPECT_THAT(found.problems, ElementsAre("blk.0.extra.weight is not part of this model"));
  EXPECT_FALSE(found.importable());
  EXPECT_THAT(refusal([&] { load_decoder(source); }), HasSubstr("is not part of this model"));
}

TEST_F(GgufSourceTest, ScaledRopeIsAProblem) {
  metadata_["llama.rope.scaling.type"] = "yarn";
  EXPECT_TRUE(open().problems.empty());  // by a factor of 1
  metadata_["llama.rope.scaling.factor"] = 4.0;
  EXPECT_THAT(open().problems, ElementsAre("rope scaling (yarn) is not supported"));
  metadata_["llama.rope.scaling.type"] = "none";
  EXPECT_TRUE(open().problems.empty());
  tensors_.emplace_back("rope_freqs.weight", torch::ones({3}));
  EXPECT_THAT(open().problems, ElementsAre("rope scaling by rope_freqs.weight is not supported"));
  EXPECT_FALSE(open().tensors.contains("(unknown) rope_freqs.weight"));
}

TEST_F(GgufSourceTest, ArchitecturesAndTokenizersThatAreNotSupportedAreProblems) {
  metadata_["tokenizer.ggml.model"] = "bert";
  EXPECT_THAT(open().problems, ElementsAre("tokenizer \"bert\" is not supported; supported: llama, gpt2"));
  metadata_.erase("tokenizer.ggml.model");
  EXPECT_FALSE(open().tokenizer.has_value());
  metadata_["general.architecture"] = "mamba";
  EXPECT_THAT(
      open().problems,
      ElementsAre("architecture \"mamba\" is not supported; supported: llama, qwen2, qwen3, gemma3, gpt2"));
  metadata_.erase("general.architecture");
  EXPECT_THAT(open().problems.front(), HasSubstr("architecture \"?\""));
}

TEST_F(GgufSourceTest, GemmaHasASlidingWindowAndNoSoftCapping) {
  const ModelConfig gemma = tiny_gemma();
  use(gemma);
  tensors_.emplace_back("output.weight", torch::zeros({40, 16}));  // a copy of the embedding
  const ImportSource source = open();
  EXPECT_TRUE(source.problems.empty());
  EXPECT_TRUE(source.config.tied_embeddings);
  EXPECT_EQ(source.config.sliding_window, 5);
  EXPECT_EQ(source.config.rope_local_theta, 10000);
  EXPECT_NO_THROW(load_decoder(source));
  metadata_["gemma3.rope.freq_base_swa"] = 300.0;
  EXPECT_EQ(open().config.rope_local_theta, 300);
  for (const char* key : {"gemma3.final_logit_softcapping", "gemma3.attn_logit_softcapping"}) {
    metadata_[key] = 30.0;
    EXPECT_THAT(open().problems, ElementsAre("logit soft-capping is not supported"));
    metadata_.erase(key);
  }
  metadata_.erase("gemma3.attention.sliding_window");
  EXPECT_THAT(error(), HasSubstr("gemma3.attention.sliding_window"));
}

// The golden GPT-2 under llama.cpp's names, whose matrices are not transposed.
TEST_F(GgufSourceTest, Gpt2GivesTheLogitsOfTransformers) {
  const auto views = open_import_source(golden_models / "gpt2").tensors;
  tensors_.clear();
  const auto add = [&](const std::string& name, const std::string& hf, bool transposed = false) {
    const torch::Tensor value = views.at("transformer." + hf).read();
    tensors_.emplace_back(name, transposed ? value.t().contiguous() : value.contiguous());
  };
  add("token_embd.weight", "wte.weight");
  add("position_embd.weight", "wpe.weight");
  for (const char* kind : {".weight", ".bias"}) {
    const bool weight = std::string(kind) == ".weight";
    add(std::string("output_norm") + kind, std::string("ln_f") + kind);
    for (int layer = 0; layer < 2; ++layer) {
      const std::string block = fmt::format("blk.{}.", layer), h = fmt::format("h.{}.", layer);
      add(block + "attn_norm" + kind, h + "ln_1" + kind);
      add(block + "attn_qkv" + kind, h + "attn.c_attn" + kind, weight);
      add(block + "attn_output" + kind, h + "attn.c_proj" + kind, weight);
      add(block + "ffn_norm" + kind, h + "ln_2" + kind);
      add(block + "ffn_up" + kind, h + "mlp.c_fc" + kind, weight);
      add(block + "ffn_down" + kind, h + "mlp.c_proj" + kind, weight);
    }
  }
  metadata_ = {{"general.architecture", "gpt2"},
               {"gpt2.block_count", 2},
               {"gpt2.embedding_length", 16},
               {"gpt2.attention.head_count", 4},
               {"gpt2.feed_forward_length", 64},
               {"gpt2.context_length", 32},
               {"gpt2.attention.layer_norm_epsilon", 0.125}};
  EXPECT_EQ(open().config.norm_epsilon, 0.125);
  metadata_.erase("gpt2.attention.layer_norm_epsilon");
  EXPECT_EQ(open().config.norm_epsilon, 1e-5);
  const json golden = parse_file(golden_models / "gpt2/logits.json");
  EXPECT_LT(
      worst(inspect_logits(folder_ / "m.gguf", golden["ids"].get<std::vector<int64_t>>()), golden["logits"]),
      1e-4);
}

TEST_F(GgufSourceTest, SentencePiecesKeepTheirScoresKindsAndSettings) {
  auto& scores = metadata_["tokenizer.ggml.scores"];
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = -0.5 * static_cast<double>(i);
  metadata_["tokenizer.ggml.token_type"][0] = 3;  // some files mark the unknown piece as a control piece
  metadata_["tokenizer.ggml.token_type"][5] = 5;
  metadata_["tokenizer.ggml.token_type"][6] = 7;  // no such kind
  metadata_["tokenizer.ggml.token_type"][7] = 0;
  metadata_["tokenizer.ggml.add_space_prefix"] = false;
  metadata_["tokenizer.ggml.remove_extra_whitespaces"] = true;
  const std::string model = open().tokenizer.value();
  const auto pieces = read_sentence_pieces(model);
  const auto before = forty_pieces().pieces;
  ASSERT_EQ(pieces.size(), 40U);
  using Kind = SentencePiece::Kind;
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(pieces[i].text, before[i].text);
    EXPECT_EQ(pieces[i].score, -0.5F * static_cast<float>(i));
    EXPECT_EQ(pieces[i].kind, i == 5 ? Kind::unused : before[i].kind) << i;
  }
  const SentencePieceSettings settings = read_sentence_piece_settings(model);
  EXPECT_FALSE(settings.add_dummy_prefix);
  EXPECT_TRUE(settings.remove_extra_whitespaces);
  for (const char* key : {"scores", "token_type", "add_space_prefix", "remove_extra_whitespaces"})
    metadata_.erase(std::string("tokenizer.ggml.") + key);
  const std::string bare = open().tokenizer.value();
  EXPECT_TRUE(read_sentence_piece_settings(bare).add_dummy_prefix);
  EXPECT_FALSE(read_sentence_piece_settings(bare).remove_extra_whitespaces);
  EXPECT_EQ(read_sentence_pieces(bare)[20].score, 0);
  EXPECT_EQ(read_sentence_pieces(bare)[20].kind, Kind::normal);
}

TEST_F(GgufSourceTest, SpecialIdsMustBeAmongThePieces) {
  const ordered_json before = metadata_;
  for (const char* key : {"bos_token_id", "eos_token_id", "unknown_token_id"}) {
    const std::string name = std::string("tokenizer.ggml.") + key;
    for (const int id : {-1, 40}) {
      metadata_[name] = id;
      EXPECT_THAT(error(), HasSubstr("out of range")) << key << " " << id;
    }
    metadata_ = before;
  }
  metadata_["tokenizer.ggml.bos_token_id"] = 39;
  metadata_["tokenizer.ggml.token_type"][39] = 3;
  EXPECT_EQ(Tokenizer::from_bytes(open().tokenizer.value(), "t").begin_id(), 39);
  metadata_.erase("tokenizer.ggml.bos_token_id");
  EXPECT_THAT(error(), HasSubstr("bos_token_id or eos_token_id is missing"));
  metadata_ = before;
  metadata_["tokenizer.ggml.tokens"] = {1, 2, 3};
  EXPECT_THAT(error(), HasSubstr("tokenizer.ggml.tokens: expected strings only"));
}

TEST_F(GgufSourceTest, AByteLevelTokenizerBecomesATokenizerJson) {
  metadata_["tokenizer.ggml.model"] = "gpt2";
  metadata_["tokenizer.ggml.pre"] = "qwen2";
  metadata_["tokenizer.ggml.merges"] = {"a b"};
  metadata_["tokenizer.ggml.token_type"][3] = 4;
  metadata_["tokenizer.ggml.token_type"][9] = 1;
  metadata_["tokenizer.ggml.token_type"][0] = 1;
  const ImportSource source = open();
  EXPECT_EQ(source.tokenizer_kind, "byte-level BPE, from the GGUF metadata");
  const json file = json::parse(*source.tokenizer);
  EXPECT_EQ(file["model"]["merges"], json({"a b"}));
  EXPECT_EQ(file["model"]["vocab"].size(), 40U);
  EXPECT_EQ(file["model"]["vocab"]["▁p7"], 7);
  EXPECT_EQ(file["model"]["ignore_merges"], false);
  const auto added = [](int id, const char* text, bool special) {
    return json{{"id", id},        {"content", text}, {"special", special}, {"single_word", false},
                {"lstrip", false}, {"rstrip", false}, {"normalized", false}};
  };
  EXPECT_EQ(file["added_tokens"],
            json({added(1, "<s>", true), added(2, "</s>", true), added(3, "▁p3", false)}));
  EXPECT_EQ(
      file["decoder"],
      (json{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}));
  // llama.cpp takes whole words of the vocabulary for this one, whatever the merges say.
  metadata_["tokenizer.ggml.pre"] = "llama-bpe";
  EXPECT_EQ(json::parse(*open().tokenizer)["model"]["ignore_merges"], true);
  metadata_["tokenizer.ggml.pre"] = "tekken";
  EXPECT_THAT(open().problems.front(),
              HasSubstr("pre-tokenizer \"tekken\" is not supported; supported: gpt-2, smollm, "
                        "llama-bpe, qwen2"));
  metadata_.erase("tokenizer.ggml.pre");
  EXPECT_EQ(json::parse(*open().tokenizer)["pre_tokenizer"]["type"], "ByteLevel");  // GPT-2's
}

TEST(GgufExport, OnlyWhatLlamaCppComputesHasAForm) {
  EXPECT_TRUE(has_gguf_form(tiny_config()));
  EXPECT_TRUE(has_gguf_form(tiny_gemma()));
  ModelConfig biased = tiny_config(), own = tiny_config(), gpt2 = tiny_config(), gemma = tiny_gemma();
  biased.bias = true;
  EXPECT_FALSE(has_gguf_form(biased));
  own.architecture = Architecture::calque;
  EXPECT_FALSE(has_gguf_form(own));
  apply_architecture(gpt2, Architecture::gpt2);
  EXPECT_FALSE(has_gguf_form(gpt2));
  gemma.rope_local_theta = 300;
  EXPECT_FALSE(has_gguf_form(gemma));
  gemma = tiny_gemma();
  gemma.layers = 12;
  EXPECT_TRUE(has_gguf_form(gemma));
  gemma.layer_types = {LayerType::sliding_attention, LayerType::full_attention};
  EXPECT_FALSE(has_gguf_form(gemma));
}

TEST(GgufExport, TheMetadataIsWhatLlamaCppNeeds) {
  ModelConfig config = tiny_config();
  config.head_size = 6;
  config.norm_epsilon = 3e-4;
  config.rope_theta = 5000;
  ordered_json found = gguf_metadata(config, Tokenizer::from_bytes(tokenizer_with_40_pieces(), "t"), "name");
  EXPECT_EQ(found["tokenizer.ggml.model"], "llama");
  EXPECT_EQ(found["tokenizer.ggml.tokens"].size(), 40U);
  EXPECT_EQ(found["tokenizer.ggml.tokens"][9], "  ");  // user-defined, with spaces
  EXPECT_EQ(found["tokenizer.ggml.token_type"][9], 4);
  EXPECT_EQ(found["tokenizer.ggml.token_type"][0], 2);
  EXPECT_EQ(found["tokenizer.ggml.token_type"][1], 3);
  EXPECT_EQ(found["tokenizer.ggml.scores"].size(), 40U);
  EXPECT_EQ(found["tokenizer.ggml.unknown_token_id"], 0);
  EXPECT_EQ(found["tokenizer.ggml.bos_token_id"], 1);
  EXPECT_EQ(found["tokenizer.ggml.eos_token_id"], 2);
  EXPECT_EQ(found["tokenizer.ggml.add_bos_token"], true);
  EXPECT_EQ(found["tokenizer.ggml.add_eos_token"], false);
  EXPECT_EQ(found["tokenizer.ggml.add_space_prefix"], true);
  EXPECT_EQ(found["tokenizer.ggml.remove_extra_whitespaces"], false);
  for (auto it = found.begin(); it != found.end();)
    it = it.key().starts_with("tokenizer.") ? found.erase(it) : std::next(it);
  EXPECT_EQ(json(found), (json{{"general.architecture", "llama"},
                               {"general.name", "name"},
                               {"llama.block_count", 2},
                               {"llama.context_length", 64},
                               {"llama.embedding_length", 16},
                               {"llama.feed_forward_length", 24},
                               {"llama.attention.head_count", 4},
                               {"llama.attention.head_count_kv", 2},
                               {"llama.attention.key_length", 6},
                               {"llama.attention.value_length", 6},
                               {"llama.rope.dimension_count", 6},
                               {"llama.attention.layer_norm_rms_epsilon", 3e-4},
                               {"llama.rope.freq_base", 5000.0},
                               {"llama.vocab_size", 40}}));
}

}  // namespace calque
