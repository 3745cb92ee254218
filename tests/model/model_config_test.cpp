#include "calque/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "field_bounds.h"
#include "tiny_model.h"

namespace calque {
namespace {

std::string model_refusal(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config = tiny_config();
  change(config);
  try {
    check_model(config);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(ModelConfig, NumbersHaveTheirLimits) {
  ModelConfig config;
  expect_bounds(fields(config), {{"layers", "1", "0"},
                                 {"layers", "1000", "1001"},
                                 {"hidden_size", "2", "1"},
                                 {"hidden_size", "65536", "65537"},
                                 {"heads", "1", "0"},
                                 {"heads", "1024", "1025"},
                                 {"kv_heads", "0", "-1"},
                                 {"kv_heads", "1024", "1025"},
                                 {"head_size", "0", "-1"},
                                 {"head_size", "4096", "4097"},
                                 {"mlp_size", "1", "0"},
                                 {"mlp_size", "1000000", "1000001"},
                                 {"norm_epsilon", "1e-12", "0"},
                                 {"context_length", "2", "1"},
                                 {"context_length", "1000000", "1000001"},
                                 {"rope_theta", "1.001", "1"},
                                 {"sliding_window", "0", "-1"},
                                 {"rope_local_theta", "1.001", "1"},
                                 {"dropout", "0", "-0.1"},
                                 {"dropout", "0.999", "1"}});
}

TEST(ModelConfig, DefaultsAreTheDocumentedOnes) {
  ModelConfig config;
  EXPECT_EQ(
      show_config(fields(config), "", false),
      "architecture: llama\nsize: none\nlayers: 6\nhidden_size: 256\nheads: 4\nkv_heads: 0\nhead_size: 0\n"
      "activation: swiglu\nmlp_size: 768\nnorm: rms\nnorm_epsilon: 1e-05\npositions: rope\n"
      "context_length: 512\nrope_theta: 10000\nsliding_window: 0\nlayer_types: []\n"
      "rope_local_theta: 10000\nqk_norm: false\npost_norm: false\nscale_embeddings: false\nbias: false\n"
      "qkv_bias: false\ntied_embeddings: true\nattention: prefix\ntarget_positions: continue\n"
      "embedding_shortcut: false\nprompt: \ndropout: 0\n");
  EXPECT_EQ(config.vocabulary, 0);
}

TEST(ModelConfig, ANamedSizeSetsFourKeys) {
  const auto sizes = [](const std::string& name) {
    ModelConfig config;
    read_config_text(fields(config), "size: " + name, "c.yaml", "", {});
    return std::array{config.layers, config.hidden_size, config.heads, config.mlp_size};
  };
  EXPECT_EQ(sizes("tiny"), (std::array<int64_t, 4>{2, 64, 2, 192}));
  EXPECT_EQ(sizes("small"), (std::array<int64_t, 4>{4, 128, 4, 384}));
  EXPECT_EQ(sizes("base"), (std::array<int64_t, 4>{6, 256, 4, 768}));
  EXPECT_EQ(sizes("none"), (std::array<int64_t, 4>{6, 256, 4, 768}));
  ModelConfig config;
  read_config_text(fields(config), "size: tiny", "c.yaml", "", {});
  EXPECT_EQ(config.size, ModelSize::tiny);
}

// What transformers' classes are built of, read from their source: (norm, positions, activation, biases, …).
TEST(ModelConfig, AnArchitectureFixesItsOptions) {
  const auto shown = [](Architecture architecture) {
    ModelConfig config;
    // The opposite of most defaults, so that what is fixed can be seen.
    config.bias = config.qkv_bias = config.qk_norm = config.post_norm = config.scale_embeddings = true;
    config.tied_embeddings = false;
    apply_architecture(config, architecture);
    std::string text =
        fmt::format("{} {} {}", name_of(config.norm), name_of(config.positions), name_of(config.activation));
    const std::pair<const char*, bool> options[] = {{"bias", config.bias},
                                                    {"qkv_bias", config.qkv_bias},
                                                    {"qk_norm", config.qk_norm},
                                                    {"post_norm", config.post_norm},
                                                    {"scale", config.scale_embeddings},
                                                    {"tied", config.tied_embeddings}};
    for (const auto& [name, value] : options) {
      if (value) text += std::string(" ") + name;
    }
    return text + fmt::format(" {} {}", config.sliding_window, config.layer_types.size());
  };
  EXPECT_EQ(shown(Architecture::llama), "rms rope swiglu bias 0 0");
  EXPECT_EQ(shown(Architecture::gpt2), "layer learned gelu bias tied 0 0");
  EXPECT_EQ(shown(Architecture::qwen2), "rms rope swiglu qkv_bias 0 0");
  EXPECT_EQ(shown(Architecture::qwen3), "rms rope swiglu qk_norm 0 0");
  EXPECT_EQ(shown(Architecture::gemma3), "rms_plus_one rope geglu qk_norm post_norm scale tied 512 6");
  EXPECT_EQ(shown(Architecture::calque), "rms rope swiglu bias qkv_bias qk_norm post_norm scale 0 0");
  ModelConfig gemma;
  gemma.sliding_window = 8;
  gemma.layer_types = {LayerType::sliding_attention};
  apply_architecture(gemma, Architecture::gemma3);
  EXPECT_EQ(gemma.sliding_window, 8);  // kept where it is set
  EXPECT_EQ(gemma.layer_types.size(), 1U);
  gemma.layer_types.clear();
  apply_architecture(gemma, Architecture::gemma3);
  std::string slides;
  for (int64_t layer = 0; layer < 13; ++layer) slides += gemma.slides(layer) ? 's' : 'f';
  EXPECT_EQ(slides, "sssssfsssssfs");
  EXPECT_FALSE(ModelConfig{}.slides(0));
}

TEST(ModelConfig, ArchitecturesAreKnownByHuggingFacesNames) {
  std::string all;
  for (const ArchitectureTraits& one : architectures()) {
    EXPECT_EQ(find_architecture(one.architecture), &one);
    all += fmt::format("{} {} {}\n", one.model_type, one.class_name, one.default_head_size);
  }
  EXPECT_EQ(all,
            "llama LlamaForCausalLM 0\ngpt2 GPT2LMHeadModel 0\nqwen2 Qwen2ForCausalLM 0\n"
            "qwen3 Qwen3ForCausalLM 128\ngemma3_text Gemma3ForCausalLM 256\n");
  EXPECT_EQ(find_architecture(Architecture::calque), nullptr);
}

TEST(ModelConfig, WhatAnArchitectureFixesCannotBeChanged) {
  const auto refused = [](Architecture architecture, const std::function<void(ModelConfig&)>& change) {
    return model_refusal([&](ModelConfig& c) {
      c.kv_heads = 0;
      apply_architecture(c, architecture);
      change(c);
    });
  };
  for (const ArchitectureTraits& one : architectures())
    EXPECT_EQ(refused(one.architecture, [](ModelConfig&) {}), "accepted") << one.model_type;
  const auto gpt2 = Architecture::gpt2, llama = Architecture::llama;
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.norm = NormKind::layer; }),
            "model.norm=layer does not fit model.architecture=llama");
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.positions = PositionKind::learned; }),
            "model.positions=learned does not fit model.architecture=llama");
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.bias = c.tied_embeddings = !c.tied_embeddings; }),
            "accepted");
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.qkv_bias = true; }),
            "model.qkv_bias=true does not fit model.architecture=llama");
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.qk_norm = true; }),
            "model.qk_norm=true does not fit model.architecture=llama");
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.post_norm = true; }),
            "model.post_norm=true does not fit model.architecture=llama");
  EXPECT_EQ(refused(llama, [](ModelConfig& c) { c.scale_embeddings = true; }),
            "model.scale_embeddings=true does not fit model.architecture=llama");
  EXPECT_EQ(refused(gpt2, [](ModelConfig& c) { c.bias = false; }),
            "model.bias=false does not fit model.architecture=gpt2");
  EXPECT_EQ(refused(gpt2, [](ModelConfig& c) { c.tied_embeddings = false; }),
            "model.tied_embeddings=false does not fit model.architecture=gpt2");
  EXPECT_THAT(refused(gpt2, [](ModelConfig& c) { c.kv_heads = 2; }), testing::HasSubstr("kv_heads or"));
  EXPECT_THAT(refused(gpt2, [](ModelConfig& c) { c.head_size = 6; }), testing::HasSubstr("kv_heads or"));
  EXPECT_EQ(refused(gpt2, [](ModelConfig& c) { c.head_size = 4; }), "accepted");
  EXPECT_EQ(refused(llama,
                    [](ModelConfig& c) {
                      c.sliding_window = 4;
                      c.layer_types = {LayerType::sliding_attention};
                    }),
            "model.sliding_window=true does not fit model.architecture=llama");
  EXPECT_EQ(refused(Architecture::gemma3,
                    [](ModelConfig& c) {
                      c.sliding_window = 0;
                      c.layer_types.clear();
                    }),
            "model.sliding_window=false does not fit model.architecture=gemma3");
}

TEST(ModelConfig, WhatCannotBeBuiltIsRefused) {
  const auto own = [](const std::function<void(ModelConfig&)>& change) {
    return model_refusal([&](ModelConfig& c) {
      c.architecture = Architecture::calque;
      change(c);
    });
  };
  EXPECT_EQ(own([](ModelConfig& c) { c.layers = 1001; }), "1001 layers; at most 1000 are supported");
  EXPECT_EQ(own([](ModelConfig& c) { c.layers = 1000; }), "accepted");
  EXPECT_EQ(own([](ModelConfig& c) { c.vocabulary = 0; }), "the model's vocabulary is empty");
  EXPECT_EQ(own([](ModelConfig& c) { c.vocabulary = 1; }), "accepted");
  EXPECT_EQ(own([](ModelConfig& c) { c.hidden_size = 18; }),
            "model.hidden_size=18 is not divisible by model.heads=4");
  EXPECT_EQ(own([](ModelConfig& c) {
              c.hidden_size = 18;
              c.head_size = 4;
            }),
            "accepted");
  EXPECT_EQ(own([](ModelConfig& c) { c.head_size = 3; }),
            "model.positions=rope needs an even head size, not 3");
  EXPECT_EQ(own([](ModelConfig& c) {
              c.head_size = 3;
              c.positions = PositionKind::learned;
            }),
            "accepted");
  EXPECT_EQ(own([](ModelConfig& c) { c.layer_types = {LayerType::sliding_attention}; }),
            "model.layer_types has sliding_attention layers, but model.sliding_window is 0");
  EXPECT_EQ(own([](ModelConfig& c) { c.sliding_window = 1; }),
            "model.sliding_window=1 needs model.layer_types with sliding_attention");
  EXPECT_EQ(own([](ModelConfig& c) { c.layer_types = {LayerType::full_attention}; }), "accepted");
  const auto windowed = [](ModelConfig& c) {
    c.sliding_window = 4;
    c.layer_types = {LayerType::full_attention, LayerType::sliding_attention};
  };
  EXPECT_EQ(own(windowed), "accepted");
  EXPECT_EQ(own([&](ModelConfig& c) {
              windowed(c);
              c.positions = PositionKind::learned;
            }),
            "model.sliding_window needs model.positions=rope");
  const auto odd = [](ModelConfig& c, PositionKind positions) {
    c.positions = positions;
    c.hidden_size = 15;
    c.head_size = 4;
  };
  EXPECT_EQ(own([&](ModelConfig& c) { odd(c, PositionKind::sinusoidal); }),
            "model.positions=sinusoidal needs an even model.hidden_size, not 15");
  EXPECT_EQ(own([&](ModelConfig& c) { odd(c, PositionKind::learned); }), "accepted");
}

TEST(ModelConfig, WeightsAreThoseOfTheMatrices) {
  ModelConfig config = tiny_config();  // 2 layers of 16, 4 heads of 4, 2 of keys and values, MLP 24
  EXPECT_EQ(config.kv_head_count(), 2);
  EXPECT_EQ(config.head_size_or_default(), 4);
  EXPECT_EQ(block_weights(config), 2 * (16 * (16 + 2 * 8) + 16 * 16 + 3 * 16 * 24));
  EXPECT_EQ(output_weights(config), 40 * 16);
  config.activation = Activation::relu;
  config.head_size = 6;
  config.kv_heads = 0;
  EXPECT_EQ(config.kv_head_count(), 4);
  EXPECT_EQ(block_weights(config), 2 * (16 * 3 * 24 + 24 * 16 + 2 * 16 * 24));
  for (const auto& [activation, gated] :
       std::vector<std::pair<Activation, bool>>{{Activation::swiglu, true},
                                                {Activation::geglu, true},
                                                {Activation::gelu, false},
                                                {Activation::relu, false}}) {
    config.activation = activation;
    EXPECT_EQ(config.is_gated(), gated);
  }
}

}  // namespace calque
