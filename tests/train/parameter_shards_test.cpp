// How parameters and the work on them are divided among ranks, and how the ranks exchange the results.
#include "calque/train/parameter_shards.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "calque/train/orthogonalise.h"
#include "calque/train/sharded_state.h"
#include "distributed/ranks.h"

namespace calque {
namespace {

// Parameters as a model has them; without memory.
std::vector<TrainedParameter> parameters_of(int64_t vocabulary, int64_t width, int64_t mlp, int layers) {
  std::vector<TrainedParameter> all;
  const auto add = [&](const std::string& name, std::vector<int64_t> sizes, std::vector<int64_t> parts = {}) {
    all.push_back({name, torch::empty(sizes, torch::kMeta), 1, std::move(parts)});
  };
  add("embedding.weight", {vocabulary, width});
  for (int i = 0; i < layers; ++i) {
    const std::string block = "block_" + std::to_string(i) + ".";
    add(block + "attention_norm.weight", {width});
    add(block + "attention.qkv.weight", {3 * width, width}, {width, width, width});
    add(block + "attention.output.weight", {width, width}, {width});
    add(block + "feed_forward_norm.weight", {width});
    add(block + "feed_forward.in.weight", {2 * mlp, width}, {mlp, mlp});
    add(block + "feed_forward.out.weight", {width, mlp}, {width});
  }
  add("norm.weight", {width});
  return all;
}

std::vector<TrainedParameter> large_vocabulary() { return parameters_of(8000, 256, 768, 6); }

int64_t count(const std::vector<TrainedParameter>& parameters) {
  int64_t sum = 0;
  for (const TrainedParameter& one : parameters) sum += one.tensor.numel();
  return sum;
}

struct Load {
  double state = 0, muon_work = 0;  // state: values of the optimizer's
  int64_t elements = 0;
};

std::vector<Load> loads(const std::vector<TrainedParameter>& parameters, OptimizerKind optimizer, int ranks) {
  std::vector<Load> all;
  for (const auto& slices : divide_parameters(parameters, optimizer, ranks)) {
    all.emplace_back();
    for (const ParameterSlice& slice : slices) {
      const TrainedParameter view = view_of(parameters, slice);
      const bool is_muon = optimizer == OptimizerKind::muon && !view.part_rows.empty();
      all.back().elements += view.tensor.numel();
      all.back().state += static_cast<double>(view.tensor.numel() * (is_muon ? 1 : 2));
      if (!is_muon) continue;
      for (const int64_t rows : view.part_rows) {
        const int64_t columns = view.tensor.size(1);
        all.back().muon_work += orthogonalising_work(rows, columns);
      }
    }
  }
  return all;
}

template <class Of>
std::pair<double, double> largest_and_mean(const std::vector<Load>& all, const Of& of) {
  double largest = 0, sum = 0;
  for (const Load& one : all) {
    largest = std::max(largest, of(one));
    sum += of(one);
  }
  return {largest, sum / static_cast<double>(all.size())};
}

TEST(ParameterDivision, EveryRowBelongsToOneRank) {
  const auto parameters = large_vocabulary();
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    for (const int ranks : {1, 2, 3, 7, 64, 512}) {
      std::map<size_t, std::vector<std::pair<int64_t, int64_t>>> rows;
      const auto by_rank = divide_parameters(parameters, optimizer, ranks);
      ASSERT_EQ(by_rank.size(), static_cast<size_t>(ranks));
      for (const auto& slices : by_rank) {
        for (const ParameterSlice& one : slices) rows[one.parameter].emplace_back(one.begin, one.end);
      }
      for (size_t i = 0; i < parameters.size(); ++i) {
        std::sort(rows[i].begin(), rows[i].end());
        int64_t next = 0;
        for (const auto& [begin, end] : rows[i]) {
          EXPECT_EQ(begin, next) << parameters[i].name;
          EXPECT_GT(end, begin);
          next = end;
        }
        EXPECT_EQ(next, parameters[i].tensor.size(0)) << parameters[i].name << " on " << ranks << " ranks";
      }
    }
  }
}

TEST(ParameterDivision, AdamsStateIsDividedEvenly) {
  const auto parameters = large_vocabulary();
  for (const int ranks : {2, 3, 4, 16, 64, 512}) {
    const auto [largest, mean] = largest_and_mean(loads(parameters, OptimizerKind::adamw, ranks),
                                                  [](const Load& one) { return one.state; });
    EXPECT_LT(largest, mean * (ranks < 100 ? 1.01 : 1.1)) << ranks << " ranks";
  }
}

TEST(ParameterDivision, MuonsWorkIsDividedAsFarAsMatricesStayWhole) {
  const auto parameters = large_vocabulary();
  const double largest_matrix = 768 * 256, largest_work = orthogonalising_work(768, 256);
  for (const int ranks : {2, 3, 4, 16, 64, 512}) {
    const auto all = loads(parameters, OptimizerKind::muon, ranks);
    const auto [state, mean_state] = largest_and_mean(all, [](const Load& one) { return one.state; });
    EXPECT_LT(state, std::max(mean_state * 1.01, largest_matrix + 1)) << ranks << " ranks";
    const auto [work, mean_work] = largest_and_mean(all, [](const Load& one) { return one.muon_work; });
    EXPECT_LE(work, ranks <= 4 ? mean_work * 1.1 : mean_work + largest_work) << ranks << " ranks";
  }
}

TEST(ParameterDivision, MuonsMatricesStayWhole) {
  const auto parameters = large_vocabulary();
  for (const auto& slices : divide_parameters(parameters, OptimizerKind::muon, 16)) {
    for (const ParameterSlice& slice : slices) {
      const TrainedParameter view = view_of(parameters, slice);
      if (parameters[slice.parameter].part_rows.empty()) continue;
      EXPECT_EQ(std::accumulate(view.part_rows.begin(), view.part_rows.end(), int64_t{0}),
                view.tensor.size(0))
          << view.name;
      EXPECT_EQ(slice.begin % view.part_rows.front(), 0) << view.name;
    }
  }
}

TEST(ParameterDivision, AViewSaysWhichRowsItHas) {
  const std::vector<TrainedParameter> parameters = {
      {"block_0.qkv.weight", torch::arange(12, torch::kFloat32).view({6, 2}), 0.5, {2, 1, 3}}};
  const TrainedParameter part = view_of(parameters, {0, 2, 6});
  EXPECT_EQ(part.name, "block_0.qkv.weight[2:6]");
  EXPECT_THAT(part.part_rows, testing::ElementsAre(1, 3));
  EXPECT_EQ(part.lr_scale, 0.5);
  EXPECT_EQ(part.tensor[0][0].item<float>(), 4);
  part.tensor.fill_(-1);
  EXPECT_EQ(parameters[0].tensor.sum().item<float>(), 0 + 1 + 2 + 3 - 8);
  EXPECT_EQ(view_of(parameters, {0, 0, 6}).name, "block_0.qkv.weight");
  const SliceName name = parse_slice_name(part.name + ".momentum");
  EXPECT_EQ(name.whole, "block_0.qkv.weight.momentum");
  EXPECT_EQ(name.begin, 2);
  EXPECT_EQ(name.end, 6);
  EXPECT_FALSE(parse_slice_name("embedding.weight.mean").is_slice);
}

TEST(ExchangePlan, NoRankReceivesOrHoldsMoreThanTheParameters) {
  const auto parameters = large_vocabulary();
  const auto whole = static_cast<double>(count(parameters));
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    for (const int ranks : {2, 3, 4, 64, 512}) {
      std::vector<int64_t> sizes;
      for (const Load& load : loads(parameters, optimizer, ranks)) sizes.push_back(load.elements);
      const ExchangePlan plan = plan_exchange(sizes);
      EXPECT_EQ(plan.elements, count(parameters));
      std::vector<double> sent(sizes.size()), received(sizes.size());
      for (size_t rank = 0; rank < sizes.size(); ++rank)
        sent[rank] = received[rank] = static_cast<double>(plan.piece * (ranks - 1));
      for (const ExchangePlan::Move& move : plan.moves) {
        EXPECT_NE(move.from, move.to);
        EXPECT_EQ(move.begin / plan.piece, move.to);
        sent[static_cast<size_t>(move.from)] += static_cast<double>(move.end - move.begin);
        received[static_cast<size_t>(move.to)] += static_cast<double>(move.end - move.begin);
      }
      for (size_t rank = 0; rank < sizes.size(); ++rank) {
        EXPECT_LE(received[rank], whole + ranks) << rank << " of " << ranks;
        EXPECT_LE(sent[rank], whole * 1.1 + static_cast<double>(sizes[rank])) << rank << " of " << ranks;
      }
      EXPECT_LE(std::accumulate(sent.begin(), sent.end(), 0.0), 1.1 * whole * ranks);
    }
  }
}

TEST(ExchangePlan, MessagesThatNeedNotWaitForEachOtherDoNot) {
  // Each rank has a little more than its piece, so that all pass something on to the next.
  const ExchangePlan plan = plan_exchange({13, 12, 12, 12, 12, 11, 10, 6});
  std::map<int, int> ready;  // by rank: the round in which it can begin its next message
  int last = 0;
  for (const ExchangePlan::Move& move : plan.moves) {
    const int round = std::max(ready[move.from], ready[move.to]);
    ready[move.from] = ready[move.to] = round + 1;
    last = std::max(last, round);
  }
  EXPECT_EQ(plan.moves.size(), 7U);
  EXPECT_LE(last, 1);
}

TEST(ShareExchange, CopiesSharesOfAnySize) {
  for (const int64_t window : {int64_t{4}, int64_t{1} << 20}) {
    run_ranks(3, [&](ProcessGroup& group) {
      std::vector<std::vector<torch::Tensor>> shares = {
          {},
          {torch::zeros({7, 3}), torch::zeros({0}), torch::zeros({5})},
          {torch::zeros({1}), torch::zeros({2, 2})}};
      for (torch::Tensor& own : shares[static_cast<size_t>(group.rank())])
        own.copy_(torch::arange(own.numel()).view_as(own) + 100 * group.rank());
      DeviceGroup device_group(group, torch::kCPU);
      ShareExchange(shares, device_group, window).run();
      for (size_t rank = 0; rank < shares.size(); ++rank) {
        for (const torch::Tensor& tensor : shares[rank]) {
          const torch::Tensor wanted = torch::arange(tensor.numel()) + 100 * static_cast<int64_t>(rank);
          EXPECT_TRUE(tensor.flatten().equal(wanted.to(torch::kFloat32))) << group.rank() << " of " << rank;
        }
      }
    });
  }
}

TEST(ShardedState, SlicesAreJoinedAndCut) {
  const torch::Tensor whole = torch::arange(20, torch::kFloat32).view({5, 4});
  run_ranks(2, [&](ProcessGroup& group) {
    NamedTensors own;
    if (group.is_first()) {
      own = {{"w[3:5].mean", whole.slice(0, 3, 5).clone()}, {"w[3:5].step", torch::tensor(7.0f)}};
    } else {
      own = {{"a.mean", torch::ones({3})},
             {"w[0:3].mean", whole.slice(0, 0, 3).clone()},
             {"w[0:3].step", torch::tensor(7.0f)}};
    }
    const NamedTensors all = collect_tensors(group, own);
    EXPECT_EQ(all.size(), group.is_first() ? 3U : 0U);
    if (group.is_first()) {
      EXPECT_EQ(all[0].first, "a.mean");
      EXPECT_EQ(all[1].first, "w.mean");
      EXPECT_TRUE(all[1].second.equal(whole));
      EXPECT_EQ(all[2].first, "w.step");
      EXPECT_EQ(all[2].second.item<float>(), 7);
    }
    distribute_tensors(group, own, [&](const std::string& name) {
      return name == "w.mean" ? whole + 1 : name == "w.step" ? torch::tensor(8.0f) : torch::zeros({3});
    });
    const size_t mean = group.is_first() ? 0 : 1;
    EXPECT_EQ(own[mean].second[0][0].item<float>(), group.is_first() ? 13 : 1);
    EXPECT_EQ(own[mean + 1].second.item<float>(), 8);
  });
}

}  // namespace
}  // namespace calque
