// calque serve: the HTTP API and the page.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/kernels/threads.h"
#include "calque/serve/server.h"

extern char** environ;

namespace calque::cli {
namespace {

struct ServeCommand {
  ServeOptions serve;
  std::filesystem::path token;
  std::vector<std::string> precisions;
  std::string device = "cpu";
  int64_t threads = 0;
  int64_t port = 8080, max_body_mb = 16, timeout_seconds = 300;
  bool open = false;
};

// A token is the first line of a file, so that it is in no list of processes.
std::string read_token(const std::filesystem::path& file) {
  std::string text = read_file(file);
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.size() < 8) throw UserError(fmt::format("{}: a token has at least 8 characters", file.string()));
  return text;
}

void open_page(const std::string& address) {
  const char* arguments[] = {"xdg-open", address.c_str(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, "xdg-open", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0)
    log::warn("no browser could be started; open {} yourself", address);
}

void run_serve(ServeCommand& command) {
  set_num_threads(command.threads);
  keep_freed_memory();
  ServeOptions& options = command.serve;
  options.device = chosen_device(command.device);
  if (command.precisions.empty()) command.precisions = {options.device.is_cpu() ? "int8" : "float32"};
  const auto& names = EnumNames<WeightPrecision>::names;
  options.precisions.clear();
  for (const std::string& one : command.precisions)
    options.precisions.push_back(static_cast<WeightPrecision>(
        std::distance(std::begin(names), std::find(std::begin(names), std::end(names), one))));
  options.http.port = static_cast<uint16_t>(command.port);
  options.http.max_body_bytes = static_cast<size_t>(command.max_body_mb) << 20;
  options.api.timeout = std::chrono::seconds(command.timeout_seconds);
  options.api.runs = runs_folder();
  if (!command.token.empty()) options.api.token = read_token(command.token);
  if (command.open) options.started = open_page;
  run_server(options);
}

}  // namespace

void add_serve_command(CLI::App& app) {
  static ServeCommand command;
  CLI::App* serve =
      add_command(app, "serve", "An HTTP API and a page that translate", "calque serve demo --open");
  serve->add_option("MODEL", command.serve.models, "Runs and checkpoints; the first is the default")
      ->required()
      ->type_name(wants_run);
  serve->add_option("--port", command.port, "The port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  serve->add_option("--host", command.serve.http.host, "The address to listen on")->capture_default_str();
  serve->add_option("--token", command.token, "Require the bearer token on the first line of this file")
      ->type_name("FILE");
  serve->add_flag("--insecure", command.serve.insecure,
                  "Allow an address that others can reach without a token");
  serve->add_flag("--open", command.open, "Open the page in a browser");
  serve
      ->add_option("--precision", command.precisions,
                   "Weight precision: float32, bfloat16 or int8; default: int8 on the CPU, else float32. "
                   "Several, as in "
                   "int8,float32: requests may ask for the others, each of which is another copy of the "
                   "weights in memory")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
      ->delimiter(',')
      ->allow_extra_args(false);
  add_device_option(*serve, command.device);
  serve->add_option("--threads", command.threads, "Processor threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  serve
      ->add_option("--queue", command.serve.max_waiting_lines,
                   "Lines that may wait; more are answered with HTTP 429")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  serve->add_option("--max-body", command.max_body_mb, "Largest request, in megabytes")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  serve->add_option("--timeout", command.timeout_seconds, "Longest time for a request, in seconds")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  serve
      ->add_option("--allow-host", command.serve.api.allowed_hosts,
                   "Accept this name in the Host header too (repeatable)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  serve
      ->add_option("--cors", command.serve.api.cors_origins,
                   "Allowed CORS origin, such as https://example.com (repeatable)")
      ->allow_extra_args(false)
      ->type_name("ORIGIN");
  serve->add_flag("--log-text", command.serve.api.log_text, "Log what is translated");
  serve->callback([] { run_serve(command); });
}

}  // namespace calque::cli
