// Server: `calque serve`: models, engine, API and HTTP put together.
#pragma once

#include <string>
#include <vector>

#include "calque/serve/api.h"
#include "calque/serve/http_server.h"

namespace calque {

struct ServeOptions {
  std::vector<std::string> models;  // runs and checkpoints; the first answers where a request names none
  std::vector<WeightPrecision> precisions = {WeightPrecision::int8};  // that a request may ask for
  torch::Device device = torch::kCPU;
  int64_t max_waiting_lines = 20'000;
  bool insecure = false;  // no token on addresses that others reach
  HttpOptions http;
  ApiOptions api;
  std::function<void(const std::string& address)> started;  // the page's address
};

// Serves until SIGINT or SIGTERM. An address other than loopback needs a token or `insecure`.
void run_server(const ServeOptions& options);

}  // namespace calque
