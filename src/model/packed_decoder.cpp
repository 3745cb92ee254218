#include "calque/model/packed_decoder.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "calque/kernels/simd_loops.h"

namespace calque {
namespace {

// Rows that a thread takes through the layers at a time: what lies between two products stays in the cache.
constexpr int64_t rows_at_once = 128;

torch::Tensor wide(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().to(torch::kFloat32).contiguous() : tensor;
}

const float* data(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

PackedMatrix pack(const Linear& linear, Packing packing) {
  return {linear.merged_weight(), linear.bias, packing};
}

// Memory for one pass of a thread, kept for the next.
class Arena {
 public:
  explicit Arena(int64_t floats) {
    if (static_cast<int64_t>(memory().size()) < floats) memory().resize(static_cast<size_t>(floats));
    next_ = memory().data();
  }
  float* take(int64_t floats) { return std::exchange(next_, next_ + floats); }

 private:
  static std::vector<float>& memory() {
    thread_local std::vector<float> kept;
    return kept;
  }
  float* next_;
};

}  // namespace

struct PackedDecoder::PackedNorm {
  PackedNorm(const Norm& norm, const ModelConfig& config)
      : weight(wide(norm.weight)), bias(wide(norm.bias)), epsilon(static_cast<float>(config.norm_epsilon)) {
    if (config.norm == NormKind::rms_plus_one) weight = weight + 1;
  }

  // [rows, width] to the same; y may be x.
  void forward(const float* x, int64_t rows, float* y) const {
    const int64_t width = weight.size(0);
    if (bias.defined())
      return simd::layer_norm_forward(x, data(weight), data(bias), epsilon, width, y, 0, rows);
    thread_local std::vector<float> inverses;
    inverses.resize(std::max(inverses.size(), static_cast<size_t>(rows)));
    simd::rms_norm_forward(x, data(weight), epsilon, width, y, inverses.data(), 0, rows);
  }

  torch::Tensor weight, bias;  // [width]; bias undefined for the root mean square
  float epsilon;
};

struct PackedDecoder::PackedBlock {
  PackedBlock(const Block& block, const ModelConfig& config, const RotaryTable* table, Packing packing)
      : attention_norm(*block.attention_norm, config),
        feed_forward_norm(*block.feed_forward_norm, config),
        qkv(pack(*block.attention->qkv, packing)),
        attended(pack(*block.attention->output, packing)),
        up(pack(*block.feed_forward->up, packing)),
        down(pack(*block.feed_forward->down, packing)),
        shape(block.attention->shape) {
    const auto add = [&](const std::shared_ptr<Norm>& norm, std::optional<PackedNorm>& packed) {
      if (norm) packed.emplace(*norm, config);
    };
    add(block.attention_outer_norm, attention_outer_norm);
    add(block.feed_forward_outer_norm, feed_forward_outer_norm);
    add(block.attention->query_norm, query_norm);
    add(block.attention->key_norm, key_norm);
    if (table != nullptr) rotary = {wide(table->cosines), wide(table->sines)};
  }

  PackedNorm attention_norm, feed_forward_norm;
  std::optional<PackedNorm> attention_outer_norm, feed_forward_outer_norm, query_norm, key_norm;
  PackedMatrix qkv, attended, up, down;
  AttentionShape shape;
  RotaryTable rotary;  // undefined where positions are not rotary
};

// A run of pairs that one thread takes through all layers.
struct PackedDecoder::Share {
  int64_t first_pair, end_pair;
};

PackedDecoder::PackedDecoder(const Decoder& decoder, Packing packing)
    : config_(decoder.config()),
      embedding_(wide(decoder.embedding->weight)),
      positions_(wide(decoder.embedding->positions)),
      output_(decoder.output_weight(), {}, packing) {
  const torch::NoGradGuard no_gradients;
  if (config_.scaled_embedding) embedding_ = embedding_ * std::sqrt(static_cast<double>(config_.width));
  for (size_t i = 0; i < decoder.blocks.size(); ++i)
    blocks_.emplace_back(*decoder.blocks[i], config_, decoder.rotary_of_layer(static_cast<int64_t>(i)),
                         packing);
  norm_ = std::make_unique<PackedNorm>(*decoder.norm, config_);
}

PackedDecoder::~PackedDecoder() = default;

int64_t PackedDecoder::bytes() const {
  int64_t sum = output_.bytes();
  for (const PackedBlock& block : blocks_)
    sum += block.qkv.bytes() + block.attended.bytes() + block.up.bytes() + block.down.bytes();
  return sum;
}

torch::Tensor PackedDecoder::logits(const torch::Tensor& tokens, const Layout& layout,
                                    const CachePass& cache) const {
  const torch::Tensor logits = torch::empty({layout.queries(), config_.vocabulary}, torch::kFloat32);
  // Shares of like work: a row passes the blocks, a row that is asked for the output matrix as well.
  const int64_t row_cost = block_weights(config_), query_cost = output_weights(config_);
  const auto cost_before = [&](int64_t pair) {
    return layout.offsets[static_cast<size_t>(pair)] * row_cost +
           layout.query_offsets[static_cast<size_t>(pair)] * query_cost;
  };
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t rounds = (layout.rows() + threads * rows_at_once - 1) / (threads * rows_at_once);
  const int64_t wanted = std::min(layout.pairs(), rounds * threads);
  std::vector<Share> shares;
  for (int64_t pair = 0; pair < layout.pairs();) {
    const auto done = static_cast<int64_t>(shares.size()) + 1;
    int64_t end = pair + 1;
    while (end < layout.pairs() &&
           (done == wanted || cost_before(end + 1) * wanted <= cost_before(layout.pairs()) * done))
      ++end;
    shares.push_back({pair, end});
    pair = end;
  }
  float* to = logits.mutable_data_ptr<float>();
  if (shares.size() == 1) {  // the threads divide its products instead
    run(shares.front(), tokens, layout, cache, to);
    return logits;
  }
  at::parallel_for(0, static_cast<int64_t>(shares.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(shares[static_cast<size_t>(i)], tokens, layout, cache, to);
  });
  return logits;
}

void PackedDecoder::run(const Share& share, const torch::Tensor& tokens, const Layout& layout,
                        const CachePass& cache, float* logits) const {
  const auto first_pair = static_cast<size_t>(share.first_pair),
             end_pair = static_cast<size_t>(share.end_pair);
  const int64_t first_row = layout.offsets[first_pair], rows = layout.offsets[end_pair] - first_row;
  const int64_t first_query = layout.query_offsets[first_pair];
  const int64_t queries = layout.query_offsets[end_pair] - first_query;
  // The share's own numbering: all rows for every layer but the last, then those that are asked for.
  std::vector<int64_t> row_offsets, query_offsets, all_rows, query_rows;
  for (size_t pair = first_pair; pair <= end_pair; ++pair) {
    row_offsets.push_back(layout.offsets[pair] - first_row);
    query_offsets.push_back(layout.query_offsets[pair] - first_query);
  }
  for (int64_t i = 0; i < rows; ++i) all_rows.push_back(i);
  for (int64_t i = 0; i < queries; ++i)
    query_rows.push_back(layout.query_rows.const_data_ptr<int64_t>()[first_query + i] - first_row);

  const int64_t width = config_.width, inner = config_.feed_forward_width;
  const int64_t query_width = blocks_.front().shape.query_width();
  const int64_t up_width = blocks_.front().up.outputs(), qkv_width = blocks_.front().qkv.outputs();
  const int64_t a_width = std::max(width, query_width), b_width = std::max(qkv_width, up_width),
                c_width = std::max(a_width, inner);
  Arena arena(rows * (width + a_width + b_width + c_width));
  float* x = arena.take(rows * width);  // what is added to from layer to layer
  float* a = arena.take(rows * a_width);
  float* b = arena.take(rows * b_width);
  float* c = arena.take(rows * c_width);

  const int64_t* position = layout.positions.const_data_ptr<int64_t>() + first_row;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t token = tokens.const_data_ptr<int64_t>()[first_row + i];
    std::copy_n(data(embedding_) + token * width, width, x + i * width);
    if (!positions_.defined()) continue;
    for (int64_t j = 0; j < width; ++j) x[i * width + j] += data(positions_)[position[i] * width + j];
  }
  // x += matrix · from, normed on the way where there is an outer norm.
  const auto add_product = [&](const PackedMatrix& matrix, const std::optional<PackedNorm>& norm,
                               const float* from, int64_t count, float* between) {
    if (!norm) return matrix.multiply(from, count, x, /*add=*/true);
    matrix.multiply(from, count, between);
    norm->forward(between, count, between);
    for (int64_t i = 0; i < count * width; ++i) x[i] += between[i];
  };
  for (size_t layer = 0; layer < blocks_.size(); ++layer) {
    const PackedBlock& block = blocks_[layer];
    const AttentionShape& shape = block.shape;
    const bool last = layer + 1 == blocks_.size();
    const int64_t asked = last ? queries : rows;
    block.attention_norm.forward(x, rows, a);
    block.qkv.multiply(a, rows, b);
    for (int64_t i = 0; block.query_norm && i < rows; ++i) {
      float* heads = b + i * qkv_width;
      block.query_norm->forward(heads, shape.heads, heads);
      block.key_norm->forward(heads + query_width, shape.key_value_heads, heads + query_width);
    }
    if (last) {  // queries of the rows that are asked for, moved together
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t row = query_rows[static_cast<size_t>(i)];
        std::copy_n(b + row * qkv_width, query_width, c + i * query_width);
        if (row != i) std::copy_n(x + row * width, width, x + i * width);
      }
    }
    simd::CachedAttentionWork work{};
    work.query_offsets = last ? query_offsets.data() : row_offsets.data();
    work.query_rows = last ? query_rows.data() : all_rows.data();
    work.positions = position;
    work.seen = cache.rows.seen.data();
    work.seen_offsets = cache.rows.seen_offsets.data() + first_pair;
    work.prefixes = cache.rows.prefixes.data() + first_pair;
    work.slots = cache.rows.slots.data() + first_row;
    work.heads = shape.heads;
    work.key_value_heads = shape.key_value_heads;
    work.head_width = shape.head_width;
    work.window = shape.window;
    work.scale = static_cast<float>(shape.scale);
    work.cosines = data(block.rotary.cosines);
    work.sines = data(block.rotary.sines);
    work.q = last ? c : b;
    work.q_stride = last ? query_width : qkv_width;
    work.kv = b + query_width;
    work.kv_stride = qkv_width;
    work.cache = cache.layers[layer].mutable_data_ptr<float>();
    work.out = a;
    simd::store_in_cache(work, 0, rows);
    simd::cached_attention(work, 0, (share.end_pair - share.first_pair) * shape.key_value_heads);
    add_product(block.attended, block.attention_outer_norm, a, asked, c);

    block.feed_forward_norm.forward(x, asked, a);
    block.up.multiply(a, asked, b);
    switch (config_.feed_forward) {
      case FeedForwardKind::swiglu:
      case FeedForwardKind::geglu:
        simd::gated_forward(b, config_.feed_forward == FeedForwardKind::geglu, inner, c, 0, asked);
        break;
      case FeedForwardKind::gelu:
        simd::gelu_forward(b, asked * inner, c);
        break;
      case FeedForwardKind::relu:
        std::transform(b, b + asked * inner, c, [](float value) { return std::max(value, 0.0F); });
        break;
    }
    add_product(block.down, block.feed_forward_outer_norm, c, asked, a);
  }
  norm_->forward(x, queries, a);
  output_.multiply(a, queries, logits + first_query * config_.vocabulary);
}

}  // namespace calque
