#include "calque/runs/run_report.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <thread>

#include "calque/base/config.h"
#include "calque/base/file.h"
#include "calque/base/units.h"
#include "calque/report/chart.h"
#include "calque/report/page.h"
#include "calque/runs/run_folder.h"

namespace calque {
namespace {

Series collect(const std::vector<nlohmann::json>& metrics, const std::string& label, const char* x,
               const char* y) {
  Series series{label, {}};
  for (const auto& line : metrics) {
    if (line.contains(y) && line[y].is_number() && line.contains(x))
      series.points.emplace_back(line[x].get<double>(), line[y].get<double>());
  }
  return series;
}

// Translations of the last validation, beside their references.
void add_samples(Page& page, const std::vector<nlohmann::json>& metrics) {
  const nlohmann::json* last = nullptr;
  for (const auto& line : metrics) {
    if (line.contains("samples") && !line["samples"].empty()) last = &line;
  }
  if (last == nullptr) return;
  page.heading(fmt::format("Translations after step {}", format_count((*last)["step"].get<int64_t>())));
  for (const auto& sample : (*last)["samples"]) {
    std::string html = "<table class=\"sides\">";
    for (const char* side : {"source", "reference", "hypothesis"})
      html += fmt::format("<tr><th>{}</th><td>{}</td></tr>", side,
                          escape_html(sample.value(side, std::string())));
    page.raw(html + "</table>\n");
  }
}

}  // namespace

void write_run_report(const std::filesystem::path& run, const RunConfig& given, int64_t parameters) {
  const auto metrics = read_metrics(run / "metrics.jsonl");
  RunConfig config = given;
  Page page("Run " + config.run);
  const Series training = collect(metrics, "training", "step", "loss"),
               validation = collect(metrics, "validation", "step", "valid_loss");
  double minutes = 0;
  for (const auto& line : metrics) minutes = std::max(minutes, line.value("seconds", 0.0) / 60);
  std::vector<std::pair<std::string, std::string>> facts = {{"parameters", format_count(parameters)},
                                                            {"minutes", fmt::format("{:.1f}", minutes)}};
  if (!metrics.empty()) {
    facts.emplace_back("steps", format_count(metrics.back().value("step", int64_t{0})));
    facts.emplace_back("tokens", format_count(metrics.back().value("tokens", int64_t{0})));
  }
  if (!validation.points.empty()) {
    double best = validation.points.front().second;
    for (const auto& [step, loss] : validation.points) best = std::min(best, loss);
    facts.emplace_back("best validation loss", fmt::format("{:.4f}", best));
  }
  page.facts(facts);
  page.heading("Loss");
  page.raw(line_chart({"loss, nats per token", "step", {training, validation}}));
  page.heading("Validation perplexity");
  page.raw(line_chart(
      {"perplexity", "step", {collect(metrics, "validation perplexity", "step", "valid_perplexity")}}));
  const Series bleu = collect(metrics, "validation BLEU, greedy", "step", "valid_bleu");
  if (!bleu.points.empty()) {
    page.heading("Validation BLEU");
    page.raw(line_chart({"BLEU", "step", {bleu}}));
    add_samples(page, metrics);
  }
  page.heading("Learning rate");
  page.raw(
      line_chart({"learning rate", "step", {collect(metrics, "learning rate", "step", "learning_rate")}}));
  page.heading("Speed");
  page.raw(line_chart(
      {"tokens per second", "step", {collect(metrics, "tokens per second", "step", "tokens_per_second")}}));
  page.heading("Configuration");
  page.code(show_config(fields(config), run));
  page.heading("Machine");
  page.facts({{"cores", std::to_string(std::thread::hardware_concurrency())},
              {"instruction set", at::get_cpu_capability()},
              {"LibTorch", TORCH_VERSION}});
  write_file(run / "report.html", page.html());
}

}  // namespace calque
