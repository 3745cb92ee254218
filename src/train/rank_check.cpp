#include "calque/train/rank_check.h"

#include <torch/version.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/train/resume_check.h"

namespace calque {

using nlohmann::json;

namespace {

// Files are compared by content.
constexpr std::string_view paths[] = {"data.train", "data.valid", "data.test", "tokenizer.path",
                                      "model.init_from"};

json describe(const RunConfig& config, const RankIdentity& identity) {
  json values = json::array({{"calque", CALQUE_VERSION},
                             {"LibTorch", TORCH_VERSION},
                             {"data.train, as a hash", identity.train_hash},
                             {"data.valid, as a hash", identity.valid_hash},
                             {"model.init_from, as a hash", identity.base_hash},
                             {"train.threads", std::to_string(identity.threads)},
                             {"bfloat16 instructions", identity.bfloat16 ? "yes" : "no"}});
  for (const auto& [key, value] : config_values(config)) {
    if (std::find(std::begin(paths), std::end(paths), key) == std::end(paths)) values.push_back({key, value});
  }
  return values;
}

}  // namespace

void check_ranks_alike(ProcessGroup& group, const RunConfig& config, const RankIdentity& identity) {
  if (group.is_alone()) return;
  const auto all = group.gather(describe(config, identity).dump());
  const json first = json::parse(all.front());
  for (int rank = 1; rank < group.size(); ++rank) {
    const json other = json::parse(all[static_cast<size_t>(rank)]);
    for (size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
      if (first[i] == other[i]) continue;
      throw UserError(fmt::format("{}: {} on {}, but {} on {}", first[i][0].get<std::string>(),
                                  first[i][1].get<std::string>(), group.name(0),
                                  other[i][1].get<std::string>(), group.name(rank)),
                      "all processes of a run need the same program, configuration and data");
    }
  }
}

}  // namespace calque
