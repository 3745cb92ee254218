#include "calque/train/rank_check.h"

#include <algorithm>

#include "calque/train/resume_check.h"

namespace calque {

namespace {

// Files are compared by content.
constexpr std::string_view paths[] = {"data.train", "data.valid", "data.test", "tokenizer.path",
                                      "model.init_from"};

Claims settings(const RunConfig& config) {
  Claims claims;
  for (const auto& [key, value] : config_values(config)) {
    if (std::find(std::begin(paths), std::end(paths), key) == std::end(paths))
      claims.emplace_back(key, value);
  }
  return claims;
}

}  // namespace

void check_settings_alike(ProcessGroup& group, const RunConfig& config) {
  group.check_alike(settings(config));
}

void check_ranks_alike(ProcessGroup& group, const RunConfig& config, const RankIdentity& identity) {
  Claims claims = {{"data.train, as a hash", identity.train_hash},
                   {"data.valid, as a hash", identity.valid_hash},
                   {"model.init_from, as a hash", identity.base_hash},
                   {"train.threads", std::to_string(identity.threads)},
                   {"bfloat16 instructions", identity.bfloat16 ? "yes" : "no"}};
  const Claims all = settings(config);
  claims.insert(claims.end(), all.begin(), all.end());
  group.check_alike(claims);
}

}  // namespace calque
