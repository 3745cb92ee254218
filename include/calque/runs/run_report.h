// The report of a run: one self-contained page with its curves, configuration, machine and numbers.
#pragma once

#include <filesystem>

#include "calque/runs/run_config.h"

namespace calque {

// Reads runs/NAME/metrics.jsonl, writes runs/NAME/report.html.
void write_run_report(const std::filesystem::path& run, const RunConfig& config, int64_t parameters);

}  // namespace calque
