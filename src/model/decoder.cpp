#include "calque/model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "calque/base/hash.h"
#include "calque/kernels/linear.h"
#include "calque/kernels/padded_pairs.h"
#include "calque/kernels/residual.h"
#include "calque/kernels/threads.h"
#include "calque/model/recompute.h"

namespace calque {
namespace {

// True if a gradient passes through the block: below all that is trained there is nothing to compute again.
bool needs_gradient(const Block& block, const torch::Tensor& x) {
  const auto parameters = block.parameters();
  return x.requires_grad() || std::any_of(parameters.begin(), parameters.end(),
                                          [](const torch::Tensor& one) { return one.requires_grad(); });
}

// Rows that one thread takes through all layers at a time: the activations stay in its cache.
constexpr int64_t rows_per_share = 128;  // mutate: speed only

struct PairRange {
  int64_t begin, end;
};

// Runs of pairs of about equal cost: a row passes through the blocks, a query through the output matrix too.
std::vector<PairRange> share_out(const Layout& layout, const ModelConfig& config) {
  // Which pairs a share has changes no result, only the speed.
  const int64_t row_cost = block_weights(config), query_cost = output_weights(config);
  const auto cost_before = [&](int64_t pair) {
    return layout.offsets[static_cast<size_t>(pair)] * row_cost +         // mutate: speed only
           layout.query_offsets[static_cast<size_t>(pair)] * query_cost;  // mutate: speed only
  };
  const int64_t threads = num_threads();                               // mutate: speed only
  const int64_t per_round = threads * rows_per_share;                  // mutate: speed only
  const int64_t rounds = (layout.rows() + per_round - 1) / per_round;  // mutate: speed only
  const int64_t wanted = std::min(layout.pairs(), rounds * threads);   // mutate: speed only
  std::vector<PairRange> shares;
  for (int64_t pair = 0; pair < layout.pairs();) {
    const auto done = static_cast<int64_t>(shares.size()) + 1;  // mutate: speed only
    int64_t end = pair + 1;
    while (end < layout.pairs() &&
           (done == wanted ||                                                      // mutate: speed only
            cost_before(end + 1) * wanted <= cost_before(layout.pairs()) * done))  // mutate: speed only
      ++end;
    shares.push_back({pair, end});  // mutate: speed only
    pair = end;
  }
  return shares;
}

}  // namespace

Decoder::Decoder(const ModelConfig& config) : config_(config) {
  check_model(config);
  embedding = register_module("embedding", std::make_shared<Embedding>(config));
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks.push_back(register_module("block_" + std::to_string(i), std::make_shared<Block>(config, i)));
  }
  norm = register_module("norm", std::make_shared<Norm>(config, config.hidden_size));
  if (!config.tied_embeddings)
    output = register_parameter("output", torch::empty({config.vocabulary, config.hidden_size}));
  if (config.embedding_shortcut)
    embedding_shortcut = register_parameter("embedding_shortcut", torch::zeros({config.layers}));
  if (config.positions == PositionKind::rope) rope_ = add_rope_table("rope", config.rope_theta);
  if (config.sliding_window > 0) local_rope_ = add_rope_table("local_rope", config.rope_local_theta);
}

// The tables are buffers, so that they move with the model.
RopeTable Decoder::add_rope_table(const std::string& name, double theta) {
  const RopeTable table = make_rope_table(config_.context_length, config_.head_size_or_default(), theta);
  return {register_buffer(name + "_cosines", table.cosines), register_buffer(name + "_sines", table.sines)};
}

const RopeTable* Decoder::layer_rope(int64_t layer) const {
  const RopeTable& table = config_.slides(layer) ? local_rope_ : rope_;
  return table.cosines.defined() ? &table : nullptr;
}

torch::Tensor Decoder::run(const torch::Tensor& tokens, const ForwardContext& context) const {
  const Layout& layout = context.layout;
  const Layout all = query_all_rows(layout);
  const auto embedded = embedding->forward(tokens, {all, context.hook});  // [rows, hidden_size]
  auto x = embedded;
  const CacheIndex* index = context.cache != nullptr ? &context.cache->index : nullptr;
  const auto padded = padding_for(x, layout, index);
  const auto padded_all = layout.queries_all_rows() ? padded : padding_for(x, all, index);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const bool last = i + 1 == blocks.size();
    if (embedding_shortcut.defined()) x = add_scaled(x, embedded, embedding_shortcut[layer]);
    if (gradient_checkpointing && torch::GradMode::is_enabled() && needs_gradient(*blocks[i], x)) {
      // Copies the layout: the backward pass comes when this function has returned.
      x = recomputed(
          [block = blocks[i], own = last ? layout : all, layer, rope = layer_rope(layer),
           own_padded = last ? padded : padded_all](const torch::Tensor& input) {
            return block->forward(input, {own, nullptr, nullptr, layer, {}, own_padded.get()}, rope);
          },
          x);
      continue;
    }
    ForwardContext inner{
        last ? layout : all, context.hook, context.cache, layer, {}, (last ? padded : padded_all).get()};
    if (context.hook != nullptr) inner.scope = "blocks." + std::to_string(i) + ".";
    x = blocks[i]->forward(x, inner, layer_rope(layer));  // [rows or queries, hidden_size]
  }
  return context.show("norm", norm->forward(x));  // [queries, hidden_size]
}

torch::Tensor Decoder::project(const torch::Tensor& hidden) const {
  if (packed_output_) return packed_output_->multiply(hidden);
  const torch::Tensor& weight = output_weight();
  return linear(hidden, weight, {}, weight.scalar_type());  // [queries, vocabulary]
}

torch::Tensor Decoder::hidden(const torch::Tensor& tokens, const Layout& layout, const Hook* hook) const {
  return run(tokens, {layout, hook});
}

torch::Tensor Decoder::logits(const torch::Tensor& tokens, const Layout& layout, const Hook* hook) const {
  return ForwardContext{layout, hook}.show("logits", project(hidden(tokens, layout, hook)));
}

// Packed weights run without waiting between layers: each thread takes its share of the pairs through all of
// them. A single share leaves the threads to the products inside.
torch::Tensor Decoder::logits(const torch::Tensor& tokens, const Layout& layout, const CacheView& cache,
                              const Hook* hook) const {
  std::vector<PairRange> shares;
  if (packed_output_ && hook == nullptr) shares = share_out(layout, config_);
  if (shares.size() < 2) return project(run(tokens, {layout, hook, &cache}));  // mutate: speed only
  const torch::Tensor logits = torch::empty({layout.queries(), config_.vocabulary}, torch::kFloat32);
  parallel_units(static_cast<int64_t>(shares.size()), num_threads(), [&](int64_t unit) {
    const torch::NoGradGuard no_gradients;  // the setting is each thread's own
    const auto [first, last] = shares[static_cast<size_t>(unit)];
    const int64_t row = layout.offsets[static_cast<size_t>(first)];
    const Layout part = slice_pairs(layout, first, last);
    const CacheView part_cache{cache.index.slice_pairs(first, last, row, part.rows()), cache.layers};
    const auto x = run(tokens.slice(0, row, row + part.rows()), {part, nullptr, &part_cache});
    packed_output_->multiply(x.const_data_ptr<float>(), part.queries(),
                             logits.mutable_data_ptr<float>() +
                                 layout.query_offsets[static_cast<size_t>(first)] * config_.vocabulary);
  });
  return logits;
}

CrossEntropyLoss Decoder::loss(const torch::Tensor& tokens, const Layout& layout, const torch::Tensor& labels,
                               double smoothing) const {
  return linear_cross_entropy(hidden(tokens, layout), output_weight(), labels, smoothing, products_);
}

torch::Tensor Decoder::label_scores(const torch::Tensor& tokens, const Layout& layout,
                                    const torch::Tensor& labels, const Hook* hook) const {
  const auto x = hidden(tokens, layout, hook);             // [queries, hidden_size]
  const int64_t chunk = x.device().is_cpu() ? 256 : 4096;  // mutate: memory only
  std::vector<torch::Tensor> scores;
  for (int64_t begin = 0; begin < x.size(0); begin += chunk) {
    const auto logits = project(x.slice(0, begin, begin + chunk));           // [chunk, vocabulary]
    const auto wanted = labels.slice(0, begin, begin + chunk).unsqueeze(1);  // [chunk, 1]
    scores.push_back(logits.gather(1, wanted).squeeze(1) - logits.logsumexp(1));
  }
  return torch::cat(scores);
}

void Decoder::use_products(torch::Dtype type) {
  products_ = type;
  for (const auto& block : blocks) {
    for (const Block::Matrix& matrix : block->matrices()) matrix.linear->products = type;
  }
}

void Decoder::store_weights(torch::Dtype type) {
  use_products(type);
  for (auto& parameter : parameters()) parameter.set_requires_grad(false);
  for (const auto& block : blocks) {
    for (const Block::Matrix& matrix : block->matrices())
      matrix.linear->weight.set_data(matrix.linear->weight.to(type));
  }
  torch::Tensor weight = output_weight();  // with tied embeddings they are stored alike
  weight.set_data(weight.to(type));
}

void Decoder::pack(WeightPrecision precision) {
  const torch::NoGradGuard no_gradients;
  packed_precision_ = precision;
  for (const auto& block : blocks) {
    for (const Block::Matrix& matrix : block->matrices()) matrix.linear->pack(precision);
  }
  packed_output_ = std::make_shared<PackedMatrix>(output_weight(), torch::Tensor(), precision);
  if (output.defined()) {
    parameters_.erase("output");
    output = torch::Tensor();
  } else if (precision == WeightPrecision::float32) {
    embedding->share(packed_output_);
  }
}

void Decoder::share_packed(const Decoder& base) {
  const torch::NoGradGuard no_gradients;
  TORCH_CHECK(base.packed_output_ && base.blocks.size() == blocks.size() &&
                  base.packed_output_->outputs() == config_.vocabulary &&
                  base.packed_output_->inputs() == config_.hidden_size,
              "the base has another shape");
  packed_precision_ = base.packed_precision_;
  packed_output_ = base.packed_output_;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto own = blocks[i]->matrices(), shared = base.blocks[i]->matrices();
    for (size_t j = 0; j < own.size(); ++j) own[j].linear->share_packed(*shared[j].linear);
  }
  if (output.defined()) {
    parameters_.erase("output");
    output = torch::Tensor();
  } else if (packed_precision_ == WeightPrecision::float32) {
    embedding->share(packed_output_);
  }
  const auto from = base.named_parameters();  // embeddings and norms
  for (auto& parameter : named_parameters()) parameter.value().set_data(from[parameter.key()].detach());
}

void Decoder::initialise(uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  const double deviation = 0.02, residual = deviation / std::sqrt(2.0 * static_cast<double>(config_.layers));
  uint64_t drawn = 0;  // mutate: any number gives another random stream
  // A generator per tensor: adding a tensor changes no other.
  const auto draw = [&](torch::Tensor& tensor, double spread) {
    if (!tensor.defined()) return;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(mix(seed, drawn++));
    tensor.normal_(0.0, spread, generator);
  };
  draw(embedding->weight, deviation);
  if (config_.positions == PositionKind::learned) draw(embedding->positions, deviation);
  draw(output, deviation);
  for (const auto& block : blocks) {
    draw(block->attention->qkv->weight, deviation);
    draw(block->attention->output->weight, residual);
    draw(block->feed_forward->up->weight, deviation);
    draw(block->feed_forward->down->weight, residual);
  }
}

WeightPrecision Decoder::weight_precision() const {
  if (packed_precision_) return *packed_precision_;
  return output_weight().scalar_type() == torch::kBFloat16 ? WeightPrecision::bfloat16
                                                           : WeightPrecision::float32;
}

int64_t Decoder::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : parameters()) count += parameter.numel();
  for (const auto& block : blocks) {
    for (const Block::Matrix& matrix : block->matrices()) count += matrix.linear->stored_weights();
  }
  if (packed_output_) {
    const bool shared = config_.tied_embeddings && embedding->weight.defined();
    if (!shared) count += config_.vocabulary * config_.hidden_size;
  }
  return count;
}

std::shared_ptr<Decoder> packed_copy(const Decoder& decoder, WeightPrecision precision) {
  const torch::NoGradGuard no_gradients;
  auto copy = std::make_shared<Decoder>(decoder.config());
  const auto from = decoder.named_parameters();
  for (auto& parameter : copy->named_parameters()) {
    if (const torch::Tensor* own = from.find(parameter.key())) parameter.value().set_data(own->detach());
  }
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const auto own = decoder.blocks[i]->matrices(), packed = copy->blocks[i]->matrices();
    for (size_t j = 0; j < own.size(); ++j) packed[j].linear->weight = own[j].linear->merged_weight();
  }
  copy->pack(precision);
  copy->eval();
  return copy;
}

}  // namespace calque
