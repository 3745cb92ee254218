#include "calque/train/rank_check.h"

#include <algorithm>

#include "calque/train/resume_check.h"

namespace calque {

namespace {

// Files are compared by content, and what the number of threads comes to where it matters.
constexpr std::string_view own_values[] = {"data.train",     "data.valid",      "data.test",
                                           "tokenizer.path", "model.init_from", "train.threads"};

Claims settings(const RunConfig& config) {
  Claims claims;
  for (const auto& [key, value] : config_values(config)) {
    if (std::find(std::begin(own_values), std::end(own_values), key) == std::end(own_values))
      claims.emplace_back(key, value);
  }
  return claims;
}

// The others compute the same bits with any number of threads.
bool bits_depend_on_threads(const RunConfig& config) {
  const ModelConfig& model = config.model;
  return model.norm != NormKind::rms || model.bias || model.qkv_bias;
}

}  // namespace

void check_settings_alike(ProcessGroup& group, const RunConfig& config) {
  group.check_alike(settings(config));
}

void check_ranks_alike(ProcessGroup& group, const RunConfig& config, const RankIdentity& identity) {
  Claims claims = {{"data.train, as a hash", identity.train_hash},
                   {"data.valid, as a hash", identity.valid_hash},
                   {"model.init_from, as a hash", identity.base_hash},
                   {"bfloat16 instructions", identity.bfloat16 ? "yes" : "no"}};
  const Claims all = settings(config);
  claims.insert(claims.end(), all.begin(), all.end());
  group.check_alike(claims);
  if (bits_depend_on_threads(config)) {
    group.check_alike({{"train.threads", std::to_string(identity.threads)}},
                      "train.threads=N gives all processes the same number");
  }
}

}  // namespace calque
