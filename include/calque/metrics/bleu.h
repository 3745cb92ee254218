// BLEU (Papineni et al., 2002), computed as in sacreBLEU 2.6 (Post, 2018).
#pragma once

#include <memory>
#include <optional>

#include "calque/base/field.h"
#include "calque/metrics/metric.h"

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
  std::optional<double> smoothing_value = {};  // for floor (default 0.1) and add-k (default 1)
  bool lowercase = false;
  bool effective_order = false;  // for sentence BLEU: only n-gram orders that the sentence is long enough for
};

std::unique_ptr<Metric> make_bleu(const BleuOptions& options);

// The words that BLEU counts, joined by spaces.
std::string bleu_words(std::string_view text, BleuTokenizer tokenizer);

}  // namespace calque
