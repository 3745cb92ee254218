#include "calque/train/cooccurrence.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/units.h"
#include "calque/data/sentence_reader.h"
#include "calque/data/word_encoder.h"
#include "calque/kernels/linear.h"
#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"

namespace calque {
namespace {

using torch::Tensor;

// The kinds of company, each a block of the matrix's columns. A pair says more about meaning, neighbours say
// more about grammar.
enum Company : int64_t { same_pair, before, after, kinds };
// Rare tokens have too high a mutual information with everything. As in word2vec, the frequencies of context
// tokens are raised to this power.
constexpr double smoothing = 0.75;

constexpr int64_t oversampling = 32, power_iterations = 3;

struct SparseRow {
  std::vector<int64_t> columns;
  std::vector<float> values;
};

struct SparseMatrix {
  Tensor columns, values, begins;  // begins: [rows + 1]

  // this · x. x: [columns, width]
  Tensor times(const Tensor& x) const {
    constexpr int64_t sum = 0;
    return std::get<0>(at::embedding_bag(x, columns, begins, /*scale_grad_by_freq=*/false, sum,
                                         /*sparse=*/false, values, /*include_last_offset=*/true));
  }
};

SparseMatrix join(const std::vector<SparseRow>& rows) {
  int64_t count = 0;
  for (const SparseRow& row : rows) count += std::ssize(row.columns);
  const SparseMatrix matrix{torch::empty({count}, torch::kInt64), torch::empty({count}),
                            torch::zeros({std::ssize(rows) + 1}, torch::kInt64)};
  int64_t at = 0;
  auto* begins = matrix.begins.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].columns.begin(), rows[i].columns.end(),
              matrix.columns.mutable_data_ptr<int64_t>() + at);
    std::copy(rows[i].values.begin(), rows[i].values.end(), matrix.values.mutable_data_ptr<float>() + at);
    at += std::ssize(rows[i].columns);
    begins[i + 1] = at;
  }
  return matrix;
}

std::vector<SparseRow> transposed(const std::vector<SparseRow>& rows, int64_t columns) {
  std::vector<SparseRow> result(static_cast<size_t>(columns));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < rows[i].columns.size(); ++k) {
      SparseRow& row = result[static_cast<size_t>(rows[i].columns[k])];
      row.columns.push_back(static_cast<int64_t>(i));
      row.values.push_back(rows[i].values[k]);
    }
  }
  return result;
}

// Where each token occurs in the corpus, in order.
class Occurrences {
 public:
  Occurrences(const TokenisedPairs& corpus, int64_t vocabulary)
      : begins_(static_cast<size_t>(vocabulary) + 1), places_(corpus.tokens.size()) {
    for (const int32_t token : corpus.tokens) ++begins_[static_cast<size_t>(token) + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (size_t place = 0; place < places_.size(); ++place)
      places_[next[static_cast<size_t>(corpus.tokens[place])]++] = static_cast<int64_t>(place);
  }
  std::span<const int64_t> of(int64_t token) const {
    const auto begin = begins_[static_cast<size_t>(token)], end = begins_[static_cast<size_t>(token) + 1];
    return {places_.data() + begin, end - begin};
  }

 private:
  std::vector<size_t> begins_;
  std::vector<int64_t> places_;
};

// For each place in the corpus, the range of the sentence or pair that it lies in.
class Ranges {
 public:
  Ranges(const std::vector<int64_t>& ends, size_t places) : ends_(ends), index_(places) {
    int64_t begin = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      std::fill(index_.begin() + begin, index_.begin() + ends[i], static_cast<int32_t>(i));
      begin = ends[i];
    }
  }
  int32_t index(int64_t place) const { return index_[static_cast<size_t>(place)]; }
  int64_t begin(int64_t place) const {
    const int32_t i = index(place);
    return i == 0 ? 0 : ends_[static_cast<size_t>(i) - 1];
  }
  int64_t end(int64_t place) const { return ends_[static_cast<size_t>(index(place))]; }

 private:
  const std::vector<int64_t>& ends_;
  std::vector<int32_t> index_;
};

class Counter {
 public:
  Counter(const TokenisedPairs& corpus, int64_t vocabulary)
      : corpus_(corpus),
        vocabulary_(vocabulary),
        occurrences_(corpus, vocabulary),
        sentences_(corpus.sentences, corpus.tokens.size()),
        pairs_(corpus.pairs, corpus.tokens.size()) {}

  // How often each token is in the company of others: [vocabulary, kinds · vocabulary].
  std::vector<SparseRow> rows() const {
    std::vector<SparseRow> rows(static_cast<size_t>(vocabulary_));
    constexpr int64_t tokens_per_task = 16;  // mutate: speed only
    parallel_rows(vocabulary_, tokens_per_task, [&](int64_t begin, int64_t end) {
      std::vector<float> counts(static_cast<size_t>(kinds * vocabulary_));
      std::vector<int64_t> counted(static_cast<size_t>(vocabulary_), -1);  // in which pair, last
      for (int64_t token = begin; token < end; ++token) {
        count(token, counts, counted);
        SparseRow& row = rows[static_cast<size_t>(token)];
        for (size_t column = 0; column < counts.size(); ++column) {
          if (counts[column] == 0) continue;
          row.columns.push_back(static_cast<int64_t>(column));
          row.values.push_back(std::exchange(counts[column], 0));
        }
      }
    });
    return rows;
  }

 private:
  // In a pair, each token counts once.
  void count(int64_t token, std::vector<float>& counts, std::vector<int64_t>& counted) const {
    std::fill(counted.begin(), counted.end(), -1);
    const auto add = [&](Company kind, int64_t place) {
      ++counts[static_cast<size_t>(kind * vocabulary_ + corpus_.tokens[static_cast<size_t>(place)])];
    };
    int64_t last = -1;
    for (const int64_t place : occurrences_.of(token)) {
      if (place > sentences_.begin(place)) add(before, place - 1);
      if (place + 1 < sentences_.end(place)) add(after, place + 1);
      const int64_t pair = pairs_.index(place);
      if (pair == std::exchange(last, pair)) continue;
      for (int64_t other = pairs_.begin(place); other < pairs_.end(place); ++other) {
        auto& seen = counted[static_cast<size_t>(corpus_.tokens[static_cast<size_t>(other)])];
        if (std::exchange(seen, pair) != pair) add(same_pair, other);
      }
    }
  }

  const TokenisedPairs& corpus_;
  int64_t vocabulary_;
  Occurrences occurrences_;
  Ranges sentences_, pairs_;
};

// Replaces counts by the positive part of log(p(a, b) / (p(a) · p(b))), for each kind of company by itself.
void weigh(std::vector<SparseRow>& rows, int64_t vocabulary) {
  std::vector<double> columns(static_cast<size_t>(kinds * vocabulary));
  for (const SparseRow& row : rows) {
    for (size_t k = 0; k < row.columns.size(); ++k)
      columns[static_cast<size_t>(row.columns[k])] += row.values[k];
  }
  for (int64_t kind = 0; kind < kinds; ++kind) {
    const auto begin = columns.begin() + kind * vocabulary, end = begin + vocabulary;
    std::transform(begin, end, begin, [](double sum) { return std::pow(sum, smoothing); });
    const double all = std::accumulate(begin, end, 0.0);
    std::transform(begin, end, begin, [&](double sum) { return sum / all; });
  }
  for (SparseRow& row : rows) {
    double sums[kinds] = {};
    for (size_t k = 0; k < row.columns.size(); ++k) sums[row.columns[k] / vocabulary] += row.values[k];
    SparseRow kept;
    for (size_t k = 0; k < row.columns.size(); ++k) {
      const int64_t column = row.columns[k], kind = column / vocabulary;
      const double information =
          std::log(row.values[k] / (sums[kind] * columns[static_cast<size_t>(column)]));
      if (information <= 0) continue;
      kept.columns.push_back(column);
      kept.values.push_back(static_cast<float>(information));
    }
    row = std::move(kept);
  }
}

struct RightSingular {
  Tensor vectors;  // [columns, columns], the first has the largest value
  Tensor values;   // [columns]
};

RightSingular right_singular(const Tensor& x) {
  const auto [squares, vectors] = at::linalg_eigh(matrix_product(x.t(), x));  // the smallest first
  return {vectors.flip(1), squares.flip(0).clamp_min(0).sqrt()};
}

// Orthonormal columns that span what the columns of x span.
Tensor orthonormal(const Tensor& x) {
  const SingleThreadedLibTorch single_threaded;  // the order of sums depends on the number of threads
  const RightSingular right = right_singular(x);
  const Tensor inverse = torch::where(right.values > 1e-3 * right.values[0], right.values.reciprocal(),
                                      torch::zeros_like(right.values));
  return matrix_product(x, right.vectors.mul(inverse));
}

int64_t count_pairs(const Corpus& corpus) {
  Progress progress("counting pairs", corpus_bytes(corpus), "bytes");  // mutate: display only
  int64_t count = 0;
  for (const CorpusPart& part : corpus) {
    PairReader reader(part);
    int64_t shown = 0;  // mutate: display only
    for (SentencePair pair; reader.next(pair); ++count) {
      if (count % 4096 != 0) continue;                // mutate: display only
      progress.advance(reader.bytes_read() - shown);  // mutate: display only
      shown = reader.bytes_read();                    // mutate: display only
    }
  }
  return count;
}

Tensor random_normal(int64_t rows, int64_t columns, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn({rows, columns}, generator);
}

}  // namespace

TokenisedPairs tokenise_pairs(const Corpus& corpus, const Tokenizer& tokenizer, int64_t max_tokens,
                              int64_t most_pairs) {
  const size_t sentences_per_pair = is_text(corpus) ? 1 : 2;
  std::string sentence;
  const int64_t pairs = count_pairs(corpus);
  const int64_t stride = std::max<int64_t>(1, (pairs + most_pairs - 1) / most_pairs);
  SentenceReader reader(corpus, stride);
  Progress progress("reading which tokens occur together", pairs / stride, "pairs");  // mutate: display only
  WordEncoder encoder(tokenizer);
  TokenisedPairs result;
  while (reader.next(sentence)) {
    encoder.encode(sentence, result.tokens);
    result.sentences.push_back(std::ssize(result.tokens));
    if (result.sentences.size() % sentences_per_pair != 0) continue;
    progress.advance(1);  // mutate: display only
    const int64_t begin = result.pairs.empty() ? 0 : result.pairs.back();
    if (std::ssize(result.tokens) - begin <= max_tokens) {
      result.pairs.push_back(std::ssize(result.tokens));
    } else {  // training leaves it out, too, and it would take long to count
      result.tokens.resize(static_cast<size_t>(begin));
      result.sentences.resize(result.sentences.size() - sentences_per_pair);
    }
  }
  return result;
}

Tensor cooccurrence_vectors(const TokenisedPairs& pairs, int64_t vocabulary, int64_t size, uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  std::vector<SparseRow> rows = Counter(pairs, vocabulary).rows();
  weigh(rows, vocabulary);
  const SparseMatrix matrix = join(rows), transpose = join(transposed(rows, kinds * vocabulary));
  if (matrix.values.numel() == 0) return torch::zeros({vocabulary, size});
  const int64_t wide = std::min(size + oversampling, vocabulary), kept = std::min(size, vocabulary);
  Progress progress("factoring which tokens occur together", power_iterations + 1, "passes");
  Tensor left, right = random_normal(kinds * vocabulary, wide, mix(seed, 0));
  for (int64_t i = 0; i <= power_iterations; ++i) {
    left = orthonormal(matrix.times(right));  // [vocabulary, wide], spans the leading singular vectors
    right = transpose.times(left);            // [kinds · vocabulary, wide]
    if (i < power_iterations) right = orthonormal(right);
    progress.advance(1);  // mutate: display only
  }
  const SingleThreadedLibTorch single_threaded;
  // The matrix is nearly left · rightᵀ, so its left singular vectors are left · V, for right = U · S · Vᵀ. Of
  // each singular value the root is taken: the other root belongs to the contexts.
  const RightSingular singular = right_singular(right);
  Tensor vectors = matrix_product(left, singular.vectors.slice(1, 0, kept).contiguous())
                       .mul_(singular.values.slice(0, 0, kept).sqrt());
  vectors.sub_(vectors.mean(0, /*keepdim=*/true));
  vectors.div_(vectors.norm(2, 1, /*keepdim=*/true).clamp_min(1e-6));
  // No direction is special, as in a random matrix: Adam treats every column by itself.
  const Tensor rotation = std::get<0>(at::linalg_qr(random_normal(size, size, mix(seed, 1))));
  vectors = matrix_product(vectors, rotation.slice(0, 0, kept));
  std::vector<float> occurs(rows.size());
  std::transform(rows.begin(), rows.end(), occurs.begin(),
                 [](const SparseRow& row) { return row.columns.empty() ? 0.0F : 1.0F; });
  return vectors.mul_(torch::tensor(occurs).unsqueeze(1));
}

void initialise_embeddings(Decoder& decoder, const Corpus& corpus, const Tokenizer& tokenizer,
                           int64_t max_tokens, uint64_t seed) {
  constexpr int64_t most_pairs = 300'000;  // bounds time and memory
  const torch::NoGradGuard no_gradients;
  const auto start = std::chrono::steady_clock::now();
  const TokenisedPairs pairs = tokenise_pairs(corpus, tokenizer, max_tokens, most_pairs);
  const Tensor vectors =
      cooccurrence_vectors(pairs, decoder.config().vocabulary, decoder.config().hidden_size, seed);
  const auto replace = [&](Tensor weight) {
    const Tensor unit = vectors.to(weight.device());
    weight.copy_(torch::where(unit.any(1, /*keepdim=*/true), unit * weight.norm(2, 1, true), weight));
  };
  replace(decoder.embedding->weight);
  if (decoder.output.defined()) replace(decoder.output);
  log::info("embeddings start from the co-occurrence of tokens in {} ({})",
            format_count(std::ssize(pairs.pairs), is_text(corpus) ? "line" : "pair"),
            format_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
}

}  // namespace calque
