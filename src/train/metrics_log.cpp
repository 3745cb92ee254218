#include "calque/train/metrics_log.h"

#include <fmt/format.h>

#include <cmath>

#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/units.h"
#include "calque/train/matrix_speed.h"
#include "calque/train/run_setup.h"

namespace calque {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

// The CPU has no float16 products worth measuring.
at::TensorOptions limit_type(const TrainConfig& config, const at::Device& device) {
  const bool emulated = config.precision == Precision::float16 && device.is_cpu();
  return at::device(device).dtype(emulated ? at::kFloat : product_type(config.precision));
}

constexpr double live_line_seconds = 0.2;  // mutate: how often a line is shown
constexpr double plain_line_seconds = 30;  // mutate: how often a line is shown
// Enough to measure the limit with.
constexpr int64_t limit_rows = 4096;  // mutate: precision of a measurement

bool is_older(Clock::time_point& time, double seconds) {
  if (std::chrono::duration<double>(Clock::now() - time).count() < seconds) return false;
  time = Clock::now();
  return true;
}

}  // namespace

MetricsLog::MetricsLog(const RunFolder& folder, const RunConfig& config, const Decoder& decoder,
                       const TrainerState& state, const RunState& run, int ranks)
    : file_(folder.metrics()),
      config_(config.train),
      ranks_(ranks),
      decoder_(decoder),
      limit_flops_(ranks * measure_matrix_speed(decoder.config(),
                                                std::min(config.train.batch_tokens, limit_rows),
                                                limit_type(config.train, decoder.device()))),
      logged_step_(state.step),
      last_live_line_(Clock::now()),
      last_plain_line_(Clock::now()) {
  trim_metrics(file_, state.step, run.validated_step);
  if (!config_.tensorboard) return;
  // TensorBoard's files cannot be cut: they are written again from the metrics.
  std::filesystem::remove_all(folder.path() / "tensorboard");
  events_ = std::make_unique<EventFile>(folder.path() / "tensorboard");
  for (const json& line : read_metrics(file_)) events_->add_line(line);
}

void MetricsLog::append(const json& line) {
  append_metrics(file_, line);
  if (events_) events_->add_line(line);
}

void MetricsLog::record(const TrainerState& state, double run_seconds, const json& values) {
  json line = {
      {"step", state.step}, {"epoch", state.epochs()}, {"tokens", state.tokens}, {"seconds", run_seconds}};
  line.update(values);
  append(line);
}

double MetricsLog::window_speed() const { return window_.tokens / std::max(window_.seconds, 1e-9); }

double MetricsLog::fraction_of_limit() const {
  const double loss_share = window_.labels / window_.tokens;
  // A limit that was measured while the machine was busy is too low.
  return std::min(1.0, window_speed() * training_flops_per_token(decoder_, loss_share) / limit_flops_);
}

// The most important parts come first and last: a narrow terminal cuts the middle.
std::string MetricsLog::progress_line(const Step& step, const TrainerState& state) const {
  const double loss = window_.labels > 0 ? window_.loss / window_.labels : std::nan("");
  const double left =
      step.fraction_done > 0 ? step.run_seconds * (1 - step.fraction_done) / step.fraction_done : 0;
  const std::string waiting =
      ranks_ > 1 ? fmt::format(" · {:.0f} % communication", 100 * window_.communication / window_.seconds)
                 : "";
  return fmt::format(
      "step {} · {} left · loss {:.3f} · {} tokens/s · epoch {:.2f} · learning rate {:.2g} · "
      "{:.0f} % of peak FLOP/s{}",
      format_count(state.step), format_seconds(left), loss, format_count(std::llround(window_speed())),
      state.epochs(), step.learning_rate, fraction_of_limit() * 100, waiting);
}

void MetricsLog::record_step(const Step& step, const TrainerState& state) {
  if (!step.result.skipped) {
    window_.loss += step.result.loss * static_cast<double>(step.result.labels);
    window_.labels += static_cast<double>(step.result.labels);
  }
  window_.tokens += static_cast<double>(step.result.rows);
  window_.seconds += step.step_seconds + step.waited_seconds;
  window_.waited += step.waited_seconds;
  window_.communication += step.communication_seconds;
  if (is_older(last_live_line_, live_line_seconds))  // mutate: shows nothing without a terminal
    show_live_line(progress_line(step, state));      // mutate: the same
  if (state.step / config_.log_every == logged_step_ / config_.log_every) return;
  logged_step_ = state.step;
  const double loss = window_.labels > 0 ? window_.loss / window_.labels : std::nan("");
  json values = {{"loss", std::isfinite(loss) ? json(loss) : json()},
                 {"learning_rate", step.learning_rate},
                 {"gradient_norm", step.result.skipped ? json() : json(step.result.gradient_norm)},
                 {"tokens_per_second", window_speed()},
                 {"share_of_limit", fraction_of_limit()},
                 {"waited_seconds", window_.waited}};
  if (ranks_ > 1) values["communication_seconds"] = window_.communication;
  record(state, step.run_seconds, values);
  if (!stderr_is_terminal() && is_older(last_plain_line_, plain_line_seconds))
    log::info("{}", progress_line(step, state));
  window_ = {};
}

}  // namespace calque
