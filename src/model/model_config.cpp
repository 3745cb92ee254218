#include "calque/model/model_config.h"

#include "calque/base/error.h"
#include "calque/data/sequence.h"

namespace calque {
namespace {

constexpr int64_t most_layers = 1000;

// Named sizes set these; keys that are given beside `size` win, since they are read after it.
void apply_size(ModelConfig& c, ModelSize size) {
  struct Size {
    int64_t layers, width, heads, feed_forward_width;
  };
  constexpr Size sizes[] = {{6, 256, 4, 768}, {2, 64, 2, 192}, {4, 128, 4, 384}, {6, 256, 4, 768}};
  const Size& chosen = sizes[static_cast<size_t>(size)];
  c.size = size;
  c.layers = chosen.layers;
  c.width = chosen.width;
  c.heads = chosen.heads;
  c.feed_forward_width = chosen.feed_forward_width;
}

}  // namespace

Fields fields(ModelConfig& c) {
  const auto& names = EnumNames<ModelSize>::names;
  return {
      choice_field(
          "size", {std::begin(names), std::end(names)}, [&c] { return static_cast<size_t>(c.size); },
          [&c](size_t i) { apply_size(c, static_cast<ModelSize>(i)); },
          "sets layers, width, heads and feed_forward_width together; keys beside it win"),
      field("layers", c.layers, between(int64_t{1}, most_layers), "blocks of attention and feed-forward"),
      field("width", c.width, between(2, 65536), "numbers that stand for a token"),
      field("heads", c.heads, between(1, 1024), "attention heads"),
      field("key_value_heads", c.key_value_heads, between(0, 1024),
            "heads of keys and values, shared by groups of heads; 0: as many as heads"),
      field("head_width", c.head_width, between(0, 4096), "numbers a head; 0: width / heads"),
      field("feed_forward", c.feed_forward, "the feed-forward's activation; the first two are gated"),
      field("feed_forward_width", c.feed_forward_width, between(1, 1'000'000),
            "numbers inside the feed-forward"),
      field("norm", c.norm, "normalisation before each part"),
      field("norm_epsilon", c.norm_epsilon, above(0.0), "keeps the normalisation from dividing by zero"),
      field("positions", c.positions, "how a token knows its place"),
      field("max_positions", c.max_positions, between(2, 1'000'000), "the longest sequence"),
      field("rotary_base", c.rotary_base, above(1.0), "base of the rotary angles"),
      field("window", c.window, at_least(0), "how far back a layer sees, itself included; 0: all the way"),
      field("window_period", c.window_period, at_least(1),
            "each so-many-th layer sees all the way all the same"),
      field("window_rotary_base", c.window_rotary_base, above(1.0),
            "base of the rotary angles of layers with a window"),
      field("head_norms", c.head_norms, "normalise each head's queries and keys"),
      field("outer_norms", c.outer_norms, "normalise what comes out of attention and feed-forward, too"),
      field("scaled_embedding", c.scaled_embedding, "multiply the embedding by the square root of the width"),
      field("bias", c.bias, "biases in the matrices"),
      field("qkv_bias", c.qkv_bias, "biases of queries, keys and values, whatever `bias` says"),
      field("tied", c.tied, "one matrix for embedding and output"),
      field("attention", c.attention,
            "prefix: the source sees itself in both directions; causal: nothing sees ahead"),
      field("prompt", c.prompt,
            "text around {source} and {target}, such as «French: {source} English: {target}»; empty: <sep> "
            "between them, or "
            "a new line where the tokenizer has no <sep>"),
      field("dropout", c.dropout, from_below(0.0, 1.0),
            "of the embedding, attention's output and the feed-forward's output"),
  };
}

void check_model(const ModelConfig& c) {
  if (c.layers > most_layers)
    throw UserError(fmt::format("{} layers; at most {} are built", c.layers, most_layers));
  if (c.head_width == 0 && c.width % c.heads != 0) {
    throw UserError(fmt::format("model.width={} cannot be divided among model.heads={}", c.width, c.heads),
                    "or set model.head_width");
  }
  if (c.heads % c.key_value_head_count() != 0) {
    throw UserError(fmt::format("model.heads={} is no multiple of model.key_value_heads={}", c.heads,
                                c.key_value_head_count()));
  }
  if (c.positions == PositionKind::rotary && c.width_of_head() % 2 != 0) {
    throw UserError(fmt::format("model.positions=rotary turns pairs of numbers, but a head has {} of them",
                                c.width_of_head()));
  }
  if (c.window > 0 && c.positions != PositionKind::rotary)
    throw UserError("model.window needs model.positions=rotary");
  check_prompt(c.prompt);
  if (c.positions == PositionKind::sinusoidal && c.width % 2 != 0) {
    throw UserError(fmt::format("model.positions=sinusoidal needs an even model.width, not {}", c.width));
  }
  if (c.vocabulary < 1) throw UserError("the model's vocabulary is empty");
}

int64_t block_weights(const ModelConfig& c) {
  const int64_t attention = c.width * c.width_of_head() * (c.heads + 2 * c.key_value_head_count()) +
                            c.heads * c.width_of_head() * c.width;
  const int64_t feed_forward = c.width * c.feed_forward_width * (c.is_gated() ? 3 : 2);
  return c.layers * (attention + feed_forward);
}

int64_t output_weights(const ModelConfig& c) { return c.vocabulary * c.width; }

}  // namespace calque
