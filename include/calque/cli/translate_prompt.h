// The prompt of `calque translate` on a terminal: type French, read English, change how with commands.
#pragma once

#include <string>

#include "calque/cli/model_options.h"

namespace calque::cli {

// Until :quit or the end of input.
void run_prompt(const std::string& model, const ModelOptions& options, const std::string& prefix);

}  // namespace calque::cli
