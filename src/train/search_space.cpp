#include "calque/train/search_space.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "calque/base/config.h"
#include "calque/base/hash.h"
#include "calque/base/units.h"
#include "calque/data/permutation.h"

namespace calque {
namespace {

std::string flow_text(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar();
  YAML::Emitter emitter;
  emitter.SetSeqFormat(YAML::Flow);
  emitter.SetMapFormat(YAML::Flow);
  emitter << node;
  return emitter.c_str();
}

void check_override(const std::string& setting) {
  RunConfig scratch;
  read_config_text(fields(scratch), "", "", {}, {setting});
}

class SpaceReader {
 public:
  explicit SpaceReader(std::string name) : name_(std::move(name)) {}

  SearchSpace::Dimension dimension(const YAML::Node& name, const YAML::Node& node) {
    taken_.insert(here_.begin(), here_.end());
    here_.clear();
    const std::string key = name.IsScalar() ? name.Scalar() : "?";
    SearchSpace::Dimension result;
    if (node.IsSequence() && node.size() > 0) {
      for (const auto& one : node) result.choices.push_back(choice(one, key));
      return result;
    }
    result.logarithmic = node.IsMap() && node.size() == 1 && node["log"].IsDefined();
    const YAML::Node bounds = node.IsMap() && node.size() == 1 ? node[result.logarithmic ? "log" : "uniform"]
                                                               : YAML::Node(YAML::NodeType::Undefined);
    if (!bounds.IsDefined())
      refuse(name, key + ": expected a list of values, {log: [low, high]} or {uniform: [low, high]}");
    note_key(name, key);
    result.key = key;
    read_bounds(bounds, result);
    return result;
  }

 private:
  [[noreturn]] void refuse(const YAML::Node& node, const std::string& what,
                           const std::string& help = "") const {
    throw UserError(fmt::format("{}:{}: {}", name_, node.Mark().line + 1, what), help);
  }

  void read_bounds(const YAML::Node& bounds, SearchSpace::Dimension& range) {
    const std::string& key = range.key;
    if (!bounds.IsSequence() || bounds.size() != 2)
      refuse(bounds, key + ": a range has two values, [low, high]");
    range.low = bound(bounds[0], key);
    range.high = bound(bounds[1], key);
    if (!(range.low < range.high)) refuse(bounds, key + ": the range is empty; low comes first");
    if (range.logarithmic && range.low <= 0)
      refuse(bounds, key + ": a log range begins above 0", "use {uniform: [low, high]}");
    try {  // a value between the bounds that is no integer
      check_override(fmt::format("{}={}", key, range.low + (range.high - range.low) / std::numbers::pi));
    } catch (const UserError&) {
      range.integer = true;
    }
  }

  double bound(const YAML::Node& node, const std::string& key) {
    const std::string text = flow_text(node);
    setting(node, key, text);
    if (const auto count = parse_count(text)) return static_cast<double>(*count);  // 4k is a bound too
    const auto number = parse_number(text);
    if (!number) refuse(node, fmt::format("{}: \"{}\" is not a number", key, text));
    return *number;
  }

  // key=value, once the configuration's own reader has taken it.
  std::string setting(const YAML::Node& node, const std::string& key, const std::string& value) {
    const std::string text = key + "=" + value;
    try {
      check_override(text);
    } catch (const UserError& error) {
      const std::string message = error.what();
      constexpr std::string_view place = "command line: ";  // here it is a line of this file
      refuse(node, message.starts_with(place) ? message.substr(place.size()) : message, error.help());
    }
    return text;
  }

  std::vector<std::string> choice(const YAML::Node& node, const std::string& key) {
    if (!node.IsMap()) {
      note_key(node, key);
      return {setting(node, key, flow_text(node))};
    }
    std::vector<std::string> settings;
    for (const auto& entry : node) {
      note_key(entry.first, entry.first.Scalar());
      settings.push_back(setting(entry.second, entry.first.Scalar(), flow_text(entry.second)));
    }
    return settings;
  }

  // A key belongs to one dimension only: the later one would silently win.
  void note_key(const YAML::Node& node, const std::string& key) {
    if (taken_.contains(key)) refuse(node, key + ": varied twice");
    here_.insert(key);
  }

  std::string name_;
  std::set<std::string> taken_, here_;
};

// In [0, 1). A Latin hypercube (McKay et al., 1979) per block of draws: in each dimension, every eighth of
// the range is drawn from once.
double spread(uint64_t seed, int64_t draw, size_t dimension) {
  constexpr int64_t block = 8;
  const uint64_t key = mix(seed, dimension, static_cast<uint64_t>(draw / block));
  const auto stratum = static_cast<double>(Permutation(block, key)(draw % block));
  const double inside = static_cast<double>(mix(key, static_cast<uint64_t>(draw)) >> 11) * 0x1p-53;
  return (stratum + inside) / block;
}

// Three digits are enough to tell settings apart, and short enough to read.
std::string range_value(double value, double low, double high, bool integer) {
  if (integer) return std::to_string(std::llround(value));
  return format_shortest(std::clamp(std::stod(fmt::format("{:.3g}", value)), low, high));
}

}  // namespace

SearchSpace::SearchSpace(const std::string& yaml, const std::string& name) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    throw UserError(fmt::format("{}:{}: not valid YAML: {}", name, error.mark.line + 1, error.msg));
  }
  if (!root.IsMap() || root.size() == 0)
    throw UserError(
        fmt::format("{}: expected a mapping of configuration keys to their values", name),
        "for example `train.learning_rate: {log: [5e-4, 8e-3]}`; `calque tune CONFIG --show-space` "
        "prints one to start from");
  SpaceReader reader(name);
  for (const auto& entry : root) dimensions_.push_back(reader.dimension(entry.first, entry.second));
}

std::vector<std::string> SearchSpace::sample(uint64_t seed, int64_t draw) const {
  std::vector<std::string> settings;
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    const Dimension& d = dimensions_[i];
    const double at = spread(seed, draw, i);
    if (d.choices.empty()) {
      const double value =
          d.logarithmic ? d.low * std::pow(d.high / d.low, at) : d.low + (d.high - d.low) * at;
      settings.push_back(d.key + "=" + range_value(value, d.low, d.high, d.integer));
      continue;
    }
    const auto chosen = static_cast<size_t>(at * static_cast<double>(d.choices.size()));
    const auto& choice = d.choices[std::min(chosen, d.choices.size() - 1)];
    settings.insert(settings.end(), choice.begin(), choice.end());
  }
  return settings;
}

std::string default_space(const RunConfig& c) {
  std::string yaml = fmt::format("train.learning_rate: {{log: [{}, {}]}}\n",
                                 range_value(c.train.learning_rate / 4, 0, 1e9, false),
                                 range_value(c.train.learning_rate * 4, 0, 1e9, false));
  const auto around = [&](const char* key, int64_t value, int64_t least) {
    std::vector<std::string> values;
    for (const int64_t one : {value / 2, value, value * 2}) {
      if (one >= least) values.push_back(std::to_string(one));
    }
    yaml += fmt::format("{}: [{}]\n", key, join(values, ", "));
  };
  constexpr int64_t around_pair = 16;  // tokens around source and target
  around("train.batch_tokens", c.train.batch_tokens, c.data.max_tokens + around_pair);
  if (c.finetune.lora.rank == 0) yaml += "train.optimizer: [adamw, muon]\n";
  yaml += "model.dropout: [0, 0.1, 0.2]\n";
  if (!c.finetune.init_from.empty()) return yaml;
  if (c.tokenizer.path.empty()) around("tokenizer.vocabulary", c.tokenizer.vocabulary, 500);
  around("model.layers", c.model.layers, 1);
  std::string shapes;
  for (const double factor : {0.5, 1.0, 1.5}) {  // more or fewer heads of the same size
    const auto scaled = [&](int64_t value) { return std::llround(static_cast<double>(value) * factor); };
    if (scaled(c.model.heads) * c.model.hidden_size != scaled(c.model.hidden_size) * c.model.heads) continue;
    shapes += fmt::format("  - {{model.hidden_size: {}, model.heads: {}, model.mlp_size: {}}}\n",
                          scaled(c.model.hidden_size), scaled(c.model.heads), scaled(c.model.mlp_size));
  }
  if (c.model.kv_heads == 0 && c.model.head_size == 0) yaml += "shape:\n" + shapes;
  return yaml;
}

}  // namespace calque
