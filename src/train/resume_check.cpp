#include "calque/train/resume_check.h"

#include <algorithm>

#include "calque/base/config.h"
#include "calque/base/error.h"

namespace calque {
namespace {

// Keys of these sections may not change …
constexpr std::string_view fixed_sections[] = {"model.", "tokenizer."};
// … but for these, which affect neither shapes nor what the weights mean. Paths may move: the content of the
// corpora and of the base model is compared by hash.
constexpr std::string_view free_keys[] = {
    "model.dropout",        "model.lora.dropout", "model.init_from",    "model.base_lr_scale",
    "model.layer_lr_decay", "tokenizer.path",     "tokenizer.sampling", "model.size"};
// Outside these sections, these may not change either.
constexpr std::string_view fixed_keys[] = {"seed",
                                           "data.max_tokens",
                                           "data.shards",
                                           "train.batch_tokens",
                                           "train.optimizer",
                                           "distributed.local_steps"};

template <class List>
bool has(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> config_values(RunConfig config) {
  return config_values(fields(config), ".");  // absolute and relative paths of one file are the same value
}

std::vector<ConfigChange> changed_keys(const RunConfig& before, const RunConfig& now) {
  const auto old_values = config_values(before), new_values = config_values(now);
  std::vector<ConfigChange> changes;
  for (size_t i = 0; i < old_values.size(); ++i) {
    if (old_values[i].second != new_values[i].second)
      changes.push_back({old_values[i].first, old_values[i].second, new_values[i].second});
  }
  return changes;
}

bool has_change(const std::vector<ConfigChange>& changes, const std::string& key) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const ConfigChange& change) { return change.key == key; });
}

void check_resumable(const std::vector<ConfigChange>& changes) {
  for (const ConfigChange& change : changes) {
    const bool in_section = std::any_of(std::begin(fixed_sections), std::end(fixed_sections),
                                        [&](std::string_view one) { return change.key.starts_with(one); });
    const bool switched =  // averaging cannot begin or end in the middle
        change.key == "train.ema_decay" && (change.before == "0") != (change.now == "0");
    if ((in_section && !has(free_keys, change.key)) || has(fixed_keys, change.key) || switched) {
      throw UserError(fmt::format("{} is {} in the run and {} now; it cannot change on resume", change.key,
                                  change.before, change.now),
                      "set it back, or start another run: run=NAME");
    }
  }
}

}  // namespace calque
