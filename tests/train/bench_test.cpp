// The benchmarks report what they measured; how much is for no test to judge.
#include "calque/train/bench.h"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "calque/base/log.h"
#include "calque/kernels/threads.h"
#include "calque/train/busy_processes.h"
#include "calque/train/matrix_speed.h"
#include "calque/train/run_setup.h"
#include "calque/train/training_loop.h"
#include "train/small_run.h"

namespace calque {

using nlohmann::json;

TEST(Bench, TrainingIsReportedBesideTheLimitAndByParts) {
  log::start(log::Verbosity::quiet);
  const TemporaryFolder folder;
  TrainBenchOptions options;
  options.cache = folder / "cache";
  options.seconds = 0.5;
  options.threads = {2, 1};
  RunConfig config = small_run(folder);
  config.train.precision = Precision::bfloat16;  // beside float32, which is always timed
  const TrainBench bench = bench_training(config, options);
  EXPECT_EQ(num_threads(), 1);
  ASSERT_EQ(bench.rows.size(), 4U);
  DataCache cache(options.cache, 1);
  const Tokenizer tokenizer = choose_tokenizer(config, cache);
  const auto decoder = make_model(config, tokenizer, torch::kCPU);
  BatchStream stream(stream_options(config), tokenizer, cache, 0, 0);
  const double rows_per_pair = stream.epoch_rows() / static_cast<double>(stream.pairs());
  for (size_t i = 0; i < 4; ++i) {
    const TrainBenchRow& row = bench.rows[i];
    EXPECT_EQ(row.precision, i % 2 == 0 ? "float32" : "bfloat16");
    EXPECT_EQ(row.threads, i < 2 ? 2 : 1);
    EXPECT_GT(row.tokens_per_second, 0);
    EXPECT_GT(row.tokens_per_second / row.pairs_per_second, rows_per_pair / 2);
    EXPECT_LT(row.tokens_per_second / row.pairs_per_second, rows_per_pair * 2);
    // Some tokens carry loss, and some do not.
    EXPECT_GT(row.flops_per_token, training_flops_per_token(*decoder, 0.2));
    EXPECT_LT(row.flops_per_token, training_flops_per_token(*decoder, 0.8));
    EXPECT_NEAR(row.share_of_limit * row.limit_gflops * 1e9, row.tokens_per_second * row.flops_per_token,
                1e-6 * row.tokens_per_second * row.flops_per_token);
    EXPECT_GT(row.peak_bytes, 20'000'000);
    EXPECT_EQ(row.peak_bytes % 1024, 0);
    double sum = 0;
    for (const char* part :
         {"products", "attention", "norms", "activation", "loss", "optimizer", "waiting", "rest"}) {
      ASSERT_TRUE(row.breakdown.contains(part)) << part;
      EXPECT_GE(row.breakdown.at(part), 0) << part;
      sum += row.breakdown.at(part);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_EQ(bench.limit_gflops.at("float32"), bench.rows[2].limit_gflops);
  EXPECT_EQ(bench.limit_gflops.at("bfloat16"), bench.rows[3].limit_gflops);
}

TEST(Bench, OneThreadAndAllAreTimedWhereNothingElseIsAskedFor) {
  log::start(log::Verbosity::quiet);
  const TemporaryFolder folder;
  TrainBenchOptions options;
  options.cache = folder / "cache";
  options.seconds = 1e-3;
  RunConfig config = small_run(folder);
  config.train.precision = Precision::float32;
  const TrainBench bench = bench_training(config, options);
  const auto all = static_cast<int64_t>(std::thread::hardware_concurrency());
  EXPECT_EQ(bench.rows.front().threads, 1);
  EXPECT_EQ(bench.rows.back().threads, all);
  // bfloat16 is timed too where the processor has instructions for it, and its limit is measured anywhere.
  EXPECT_EQ(bench.rows.size(), (all > 1 ? 2U : 1U) * (has_bfloat16_instructions() ? 2U : 1U));
  EXPECT_GT(bench.limit_gflops.at("bfloat16"), 0);
  EXPECT_EQ(bench.rows.front().precision, "float32");
}

TEST(Bench, DecodingIsReportedForEachPrecisionBeamAndBatch) {
  log::start(log::Verbosity::quiet);
  const TemporaryFolder folder;
  RunConfig config = small_run(folder);
  config.train.validate_sentences = 0;
  TrainingOptions training;
  training.runs = folder / "runs";
  const TrainingResult result = train(config, training);
  DecodeBenchOptions options;
  options.sentences = 4;
  options.single = 2;
  options.threads = 1;
  const TestSet test{"test",
                     {"Bonjour.", "Merci beaucoup, mon ami.", "Il dort.", "Oui, je le veux bien.", "Non."},
                     {"a", "b", "c", "d", "e"},
                     0};
  set_num_threads(2);
  const ModelSource source = find_model(training.runs, result.run.filename().string());
  const DecodeBench bench = bench_decoding(source, test, options);
  EXPECT_EQ(num_threads(), 1);
  ASSERT_EQ(bench.rows.size(), 12U);
  const char* precisions[] = {"float32", "bfloat16", "int8"};
  for (size_t i = 0; i < 12; ++i) {
    const DecodeBenchRow& row = bench.rows[i];
    EXPECT_EQ(row.precision, precisions[i / 4]);
    EXPECT_EQ(row.beam, i / 2 % 2 == 0 ? 1 : 4);
    EXPECT_EQ(row.batch, i % 2 == 0 ? 1 : 64);
    EXPECT_GT(row.sentences_per_second, 0);
    EXPECT_GT(row.peak_bytes, 20'000'000);
    EXPECT_EQ(row.peak_bytes % 1024, 0);
  }
  // The two speeds are of the same sentences, which are spread over the test set.
  const auto translator = open_translator(source);
  translator->config().beam = 1;
  const auto tokens_per_sentence = [&](const std::vector<size_t>& chosen) {
    size_t tokens = 0;
    for (const size_t i : chosen) {
      const Translation translation = translator->translate(test.sources[i]);
      for (const Hypothesis& part : translation.best.front().parts) tokens += part.tokens.size() + 1;
    }
    return static_cast<double>(tokens) / static_cast<double>(chosen.size());
  };
  EXPECT_NEAR(bench.rows[0].tokens_per_second / bench.rows[0].sentences_per_second,
              tokens_per_sentence({0, 2}), 1e-6);
  EXPECT_NEAR(bench.rows[1].tokens_per_second / bench.rows[1].sentences_per_second,
              tokens_per_sentence({0, 1, 2, 3}), 1e-6);
}

TEST(Bench, JsonNamesEveryNumber) {
  TrainBench training;
  training.rows = {{"int8", 2, 3.5, 4.5, 5.5, 6.5, 7.5, 8, 1, 0.25, 0.75, {{"rest", 0.5}}}};
  training.limit_gflops = {{"float32", 9.5}};
  const json train_row = {{"precision", "int8"},
                          {"threads", 2},
                          {"tokens_per_second", 3.5},
                          {"pairs_per_second", 4.5},
                          {"flops_per_token", 5.5},
                          {"limit_gflops", 6.5},
                          {"share_of_limit", 7.5},
                          {"peak_bytes", 8},
                          {"busy", 1},
                          {"cpu_share", 0.25},
                          {"busy_efficiency", 0.75},
                          {"breakdown", {{"rest", 0.5}}}};
  EXPECT_EQ(training.to_json(), (json{{"limit_gflops", {{"float32", 9.5}}}, {"train", {train_row}}}));
  DecodeBench decoding;
  decoding.rows = {{"int8", 2, 3, 4.5, 5.5, 6, 1, 0.25, 0.75}};
  decoding.first_translation_seconds = 7.5;
  const json decode_row = {
      {"precision", "int8"},      {"beam", 2},       {"batch", 3}, {"sentences_per_second", 4.5},
      {"tokens_per_second", 5.5}, {"peak_bytes", 6}, {"busy", 1},  {"cpu_share", 0.25},
      {"busy_efficiency", 0.75}};
  EXPECT_EQ(decoding.to_json(), (json{{"decode", {decode_row}}, {"first_translation_seconds", 7.5}}));
}

TEST(Bench, WhatIsNotMeasuredIsZero) {
  EXPECT_EQ(TrainBenchRow().to_json(), (TrainBenchRow{"", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, {}}.to_json()));
  EXPECT_EQ(DecodeBenchRow().to_json(), (DecodeBenchRow{"", 0, 0, 0, 0, 0, 0, 0, 1}.to_json()));
  EXPECT_EQ(DecodeBench().first_translation_seconds, 0);
  EXPECT_EQ(TrainBenchOptions().seconds, 20);
  EXPECT_EQ(DecodeBenchOptions().sentences, 1000);
  EXPECT_EQ(DecodeBenchOptions().single, 100);
  EXPECT_EQ(DecodeBenchOptions().threads, 0);
}

TEST(Bench, BesideBusyProcessesEveryRowIsMeasuredTwice) {
  log::start(log::Verbosity::quiet);
  const TemporaryFolder folder;
  TrainBenchOptions options;
  options.cache = folder / "cache";
  options.seconds = 0.3;
  options.threads = {1};
  options.busy = 1;
  options.busy_nice = 19;
  const TrainBench bench = bench_training(small_run(folder), options);
  ASSERT_EQ(bench.rows.size() % 2, 0U);
  for (size_t i = 0; i < bench.rows.size(); i += 2) {
    const TrainBenchRow &quiet = bench.rows[i], &busy = bench.rows[i + 1];
    EXPECT_EQ(quiet.busy, 0);
    EXPECT_EQ(quiet.busy_efficiency, 1);
    EXPECT_EQ(busy.busy, 1);
    EXPECT_EQ(busy.precision, quiet.precision);
    EXPECT_GT(busy.cpu_share, 0);
    EXPECT_LT(busy.cpu_share, 2.5);  // the prefetcher has a thread too
    EXPECT_NEAR(busy.busy_efficiency * busy.cpu_share / quiet.cpu_share,
                busy.tokens_per_second / quiet.tokens_per_second, 1e-6);
  }
}

TEST(BusyProcesses, EndWithTheObject) {
  std::vector<pid_t> children;
  {
    const BusyProcesses others(2, 19);
    children = others.children();
    ASSERT_EQ(children.size(), 2U);
    for (const pid_t child : children) EXPECT_EQ(kill(child, 0), 0);
  }
  for (const pid_t child : children) EXPECT_EQ(kill(child, 0), -1);
}

TEST(BusyProcesses, EndWithAProcessThatIsKilled) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that the orphan becomes a child of the test
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const BusyProcesses others(1, 19);
    const pid_t loop = others.children().front();
    if (write(ends[1], &loop, sizeof loop) == sizeof loop) kill(getpid(), SIGKILL);
    _exit(1);
  }
  pid_t loop = 0;
  ASSERT_EQ(read(ends[0], &loop, sizeof loop), static_cast<ssize_t>(sizeof loop));
  waitpid(parent, nullptr, 0);
  pid_t ended = 0;
  for (int i = 0; i < 1000 && ended == 0; ++i) {  // 10 seconds
    ended = waitpid(loop, nullptr, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(ended, loop);
  if (ended != loop) kill(-loop, SIGKILL);
}

}  // namespace calque
