// calque bench: training and decoding speed beside the machine's limit.
#include "calque/train/bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "calque/base/error.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/cli/test_set_options.h"
#include "calque/train/rank_bench.h"
#include "calque/train/rank_check.h"

namespace calque::cli {
namespace {

struct BenchOptions {
  std::filesystem::path config = "configs/bench.yaml";
  std::vector<std::string> overrides;
  TrainBenchOptions train;
  std::string model;
  TestSetOptions test;
  DecodeBenchOptions decode;
  std::string device = "cpu";
  bool as_ranks = false;
  bool as_json = false;
};

std::string beside(int64_t busy, double cpu_share, double efficiency) {
  return fmt::format(
      "beside {} busy process{}: {:.0f} % of the processor, efficiency {:.0f} % (speed for this share)", busy,
      busy == 1 ? "" : "es", cpu_share * 100, efficiency * 100);
}

void print_training(const TrainBench& bench) {
  print(fmt::format("matrix products at the model's shapes: {:.0f} GFLOP/s in float32, {:.0f} in bfloat16\n",
                    bench.limit_gflops.at("float32"), bench.limit_gflops.at("bfloat16")));
  for (const TrainBenchRow& row : bench.rows) {
    print(fmt::format(
        "{}, {} thread{}: {} tokens/s, {} pairs/s, {:.1f} MFLOP per token: {:.0f} % of {:.0f} GFLOP/s; {}\n",
        row.precision, row.threads, row.threads == 1 ? "" : "s",
        format_count(std::llround(row.tokens_per_second)), format_count(std::llround(row.pairs_per_second)),
        row.flops_per_token / 1e6, row.share_of_limit * 100, row.limit_gflops, format_bytes(row.peak_bytes)));
    if (row.busy > 0) {
      print(fmt::format("  {}\n", beside(row.busy, row.cpu_share, row.busy_efficiency)));
      continue;
    }
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [part, share] : row.breakdown) parts.emplace_back(-share, part);
    std::sort(parts.begin(), parts.end());
    for (const auto& [share, part] : parts) print(fmt::format("  {:<12}{:>5.1f} %\n", part, -share * 100));
  }
}

void print_scaling(const ThreadScaling& scaling) {
  print(fmt::format("{}: {:.1f} % of one thread's time did not get faster with more", scaling.precision,
                    scaling.serial_share() * 100));
  const char* before = ": ";
  for (const auto& [part, times] : scaling.parts) {
    const double share = scaling.serial_share(part) * 100;
    if (share < 0.1) continue;
    print(fmt::format("{}{} {:.1f}", std::exchange(before, ", "), part, share));
  }
  print("\n  speed-up that Amdahl's law expects:");
  for (const int64_t threads : scaling_threads)
    if (threads > 1) print(fmt::format("  {} threads {:.1f}", threads, scaling.speedup(threads)));
  print("\n");
}

void print_decoding(const DecodeBench& bench) {
  print(fmt::format("{:<10}{:>6}{:>7}{:>14}{:>11}{:>10}\n", "precision", "beam", "batch", "sentences/s",
                    "tokens/s", "memory"));
  for (const DecodeBenchRow& row : bench.rows) {
    print(fmt::format("{:<10}{:>6}{:>7}{:>14.1f}{:>11}{:>10}\n", row.precision, row.beam, row.batch,
                      row.sentences_per_second, format_count(std::llround(row.tokens_per_second)),
                      format_bytes(row.peak_bytes)));
    if (row.busy > 0) print(fmt::format("  {}\n", beside(row.busy, row.cpu_share, row.busy_efficiency)));
  }
  print(fmt::format("first translation after {:.2f} s\n", bench.first_translation_seconds));
}

// From starting a process to its first translation, as a person waits for it.
double first_translation(const BenchOptions& options, const std::string& sentence) {
  int to_child[2], from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0) throw SystemError("pipe", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string(), name = options.model;
  std::string command = "translate", runs = "--runs", folder = runs_folder().string();
  std::string device = "--device=" + options.device;
  char* arguments[] = {program.data(), runs.data(),   folder.data(), command.data(),
                       name.data(),    device.data(), nullptr};
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  if (failed != 0) throw SystemError(program, failed);
  const std::string line = sentence + "\n";
  const bool written = write(to_child[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
  char answer = 0;
  const bool answered = written && read(from_child[0], &answer, 1) == 1;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  close(to_child[1]);
  close(from_child[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!answered) throw std::runtime_error("`calque translate` printed no translation");
  return seconds;
}

void print_ranks(const RankBench& bench) {
  print(fmt::format("{} processes: {} tokens/s, {:.3f} s per step, {} parameters\n", bench.ranks.size(),
                    format_count(std::llround(bench.tokens_per_second)), bench.step_seconds,
                    format_count(bench.parameters)));
  print("  rank  optimizer state  optimizer   communication\n");
  for (size_t i = 0; i < bench.ranks.size(); ++i) {
    const RankBench::Rank& rank = bench.ranks[i];
    print(fmt::format("{:>6}{:>17}{:>9.1f} ms{:>13.1f} ms\n", i, format_bytes(rank.optimizer_state_bytes),
                      rank.optimizer_seconds * 1000, rank.communication_seconds * 1000));
  }
}

// Under `calque launch` and other launchers.
void run_bench_ranks(BenchOptions& options, const World& world) {
  const auto group = std::make_shared<ProcessGroup>(
      world, Claims{{"command", "bench train"}, {"--seconds", std::to_string(options.train.seconds)}});
  RunConfig config;
  group->everywhere([&] {
    if (options.train.busy > 0)
      throw UserError("--busy measures one process, not several", "leave `calque launch` out");
    config = read_run_config(options.config, options.overrides);
  });
  check_settings_alike(*group, config);
  const RankBench bench = bench_ranks(config, options.train, group);
  if (!group->is_first()) return;
  options.as_json ? print_json(bench.to_json()) : print_ranks(bench);
}

void run_bench_train(BenchOptions& options) {
  options.train.cache = runs_folder() / ".cache";
  const World world = world_of_this_process();
  if (options.as_ranks || !world.is_alone()) return run_bench_ranks(options, world);
  const TrainBench bench = bench_training(read_run_config(options.config, options.overrides), options.train);
  if (options.as_json) return print_json(bench.to_json());
  print_training(bench);
  for (const ThreadScaling& scaling : bench.scaling) print_scaling(scaling);
}

void run_bench_decode(BenchOptions& options) {
  const ModelSource source = find_model(runs_folder(), options.model);
  const TestSet test = open_test_set(options.test, [&] { return default_test_set(source); });
  options.decode.device = chosen_device(options.device);
  DecodeBench bench = bench_decoding(source, test, options.decode);
  bench.first_translation_seconds = first_translation(options, test.sources.front());
  options.as_json ? print_json(bench.to_json()) : print_decoding(bench);
}

void add_busy_options(CLI::App& command, int64_t& busy, int64_t& busy_nice) {
  command.add_option("--busy", busy, "Measure also while this many CPU-bound processes run")
      ->check(CLI::Range(0, 256));
  command.add_option("--busy-nice", busy_nice, "Their nice level")
      ->check(CLI::Range(0, 19))
      ->capture_default_str();
}

}  // namespace

void add_bench_command(CLI::App& app) {
  static BenchOptions options;
  CLI::App* bench =
      add_command(app, "bench", "Measure training and translation speed beside the machine's limit",
                  "calque bench train");
  bench->require_subcommand(1);
  CLI::App* train = add_command(*bench, "train", "Training speed and where the time goes",
                                "calque bench train --config configs/base.yaml");
  train->add_option("--config", options.config, "Configuration file")
      ->type_name(wants_config)
      ->capture_default_str();
  train->add_option("OVERRIDES", options.overrides, "Values that override the file's")
      ->type_name(wants_overrides);
  train->add_option("--seconds", options.train.seconds, "Seconds per row")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  train
      ->add_option("--threads", options.train.threads,
                   "Thread counts to measure, such as 1,2; default: one, and all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
  add_training_device_option(*train, options.overrides);
  add_busy_options(*train, options.train.busy, options.train.busy_nice);
  train->add_flag("--ranks", options.as_ranks,
                  "What a step costs each process, as under `calque launch`, also for a single one");
  train->add_flag("--json", options.as_json, "Print the figures as JSON");
  train->callback([] { run_bench_train(options); });

  CLI::App* decode =
      add_command(*bench, "decode", "Translation speed: greedy and beam 4, one by one and in batches",
                  "calque bench decode demo");
  decode->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  add_test_set_options(*decode, options.test);
  decode
      ->add_option("--sentences", options.decode.sentences, "Sentences of the test set to translate, at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  decode->add_option("--threads", options.decode.threads, "Processor threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  add_device_option(*decode, options.device);
  add_busy_options(*decode, options.decode.busy, options.decode.busy_nice);
  decode->add_flag("--json", options.as_json, "Print the figures as JSON");
  decode->callback([] { run_bench_decode(options); });
}

}  // namespace calque::cli
