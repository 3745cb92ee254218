#include "calque/train/rank_bench.h"

#include <chrono>
#include <cmath>
#include <optional>

#include "calque/kernels/threads.h"
#include "calque/train/rank_prefetcher.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"

namespace calque {

using nlohmann::json;

namespace {

using RankBenchClock = std::chrono::steady_clock;

struct Counts {
  double steps = 0, tokens = 0, seconds = 0;
};

// Rounds until rank 0's clock says that it is enough.
Counts train_for(double seconds, Trainer& trainer, RankPrefetcher& prefetcher, const RunConfig& config) {
  ProcessGroup& group = trainer.group();
  Counts counts;
  const auto start = RankBenchClock::now();
  do {
    std::vector<StepResult> results;
    for (int64_t i = 0; i < (group.is_alone() ? 1 : config.distributed.local_steps); ++i)
      results.push_back(trainer.step(prefetcher.next(), config.train.learning_rate));
    counts.tokens += static_cast<double>(trainer.end_round(results).rows);
    counts.steps += static_cast<double>(results.size());
    const std::chrono::duration<double> spent = RankBenchClock::now() - start;
    counts.seconds = group.sum({group.is_first() ? spent.count() : 0})[0];
  } while (counts.seconds < seconds);
  return counts;
}

}  // namespace

RankBench bench_ranks(const RunConfig& config, const TrainBenchOptions& options,
                      const std::shared_ptr<ProcessGroup>& group) {
  group->set_timeout(config.distributed.timeout_seconds);
  set_num_threads(options.threads.empty() ? config.train.threads : options.threads.front(),
                  group->world().local_size);
  keep_freed_memory();  // mutate: speed
  DataCache cache(options.cache, num_threads());
  const Tokenizer tokenizer = shared_tokenizer(*group, [&] { return choose_tokenizer(config, cache); });
  const torch::Device device = training_device(config.train, group->world());
  std::shared_ptr<Decoder> model;
  group->everywhere([&] { model = make_model(config, tokenizer, device); });
  TrainConfig train = config.train;
  train.precision = training_precision(train, device);
  Trainer trainer(model, train, static_cast<uint64_t>(config.seed), device, config.finetune,
                  {group, config.distributed});
  BatchStreamOptions stream_settings = stream_options(config);
  stream_settings.rank = group->rank();
  stream_settings.ranks = group->size();
  std::optional<BatchStream> stream;
  group->everywhere_in_turn([&] { stream.emplace(stream_settings, tokenizer, cache, 0, 0); });
  stream->set_epoch_steps(
      group->gather(torch::tensor({stream->epoch_steps()}, torch::kInt64)).max().item<int64_t>());
  RankPrefetcher prefetcher(*group, [&] { return stream->next(); });
  train_for(0, trainer, prefetcher, config);  // mutate: warms up
  const double waited = group->waited_seconds(), updated = trainer.optimizer_seconds();
  const Counts counts = train_for(options.seconds, trainer, prefetcher, config);
  const torch::Tensor own = torch::tensor({static_cast<double>(trainer.optimizer_state_bytes()),
                                           (trainer.optimizer_seconds() - updated) / counts.steps,
                                           (group->waited_seconds() - waited) / counts.steps},
                                          torch::kFloat64);
  const torch::Tensor all = group->gather(own);  // [ranks, 3]
  RankBench bench;
  for (int64_t rank = 0; rank < all.size(0); ++rank) {
    bench.ranks.push_back({std::llround(all[rank][0].item<double>()), all[rank][1].item<double>(),
                           all[rank][2].item<double>()});
  }
  bench.parameters = trainer.trained_parameter_count();
  bench.tokens_per_second = counts.tokens / counts.seconds;
  bench.step_seconds = counts.seconds / counts.steps;
  return bench;
}

json RankBench::to_json() const {
  json all = {{"parameters", parameters},
              {"tokens_per_second", tokens_per_second},
              {"step_seconds", step_seconds},
              {"ranks", json::array()}};
  for (const Rank& rank : ranks) {
    all["ranks"].push_back({{"optimizer_state_bytes", rank.optimizer_state_bytes},
                            {"optimizer_seconds", rank.optimizer_seconds},
                            {"communication_seconds", rank.communication_seconds}});
  }
  return all;
}

}  // namespace calque
