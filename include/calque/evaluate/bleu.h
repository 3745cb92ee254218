// BLEU (Papineni et al., 2002) as sacreBLEU 2.6 computes it (Post, 2018).
#pragma once

#include <memory>
#include <optional>

#include "calque/base/field.h"
#include "calque/evaluate/metric.h"

namespace calque {

enum class BleuTokenizer { v13a, intl, character, none };
enum class BleuSmoothing { exp, floor, add_k, none };

template <>
struct EnumNames<BleuTokenizer> {
  static constexpr std::string_view names[] = {"13a", "intl", "char", "none"};
};
template <>
struct EnumNames<BleuSmoothing> {
  static constexpr std::string_view names[] = {"exp", "floor", "add-k", "none"};
};

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
  BleuSmoothing smoothing = BleuSmoothing::exp;
  std::optional<double> smoothing_value = {};  // of floor (0.1 unless given) and add-k (1)
  bool lowercase = false;
  bool effective_order = false;  // for single sentences: only the orders that the sentence is long enough for
};

std::unique_ptr<Metric> make_bleu(const BleuOptions& options);

// The words that BLEU counts, as one line.
std::string bleu_words(std::string_view text, BleuTokenizer tokenizer);

}  // namespace calque
