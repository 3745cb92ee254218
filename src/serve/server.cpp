#include "calque/serve/server.h"

#include <boost/asio/ip/address.hpp>

#include "calque/base/error.h"
#include "calque/base/log.h"

namespace calque {

void run_server(const ServeOptions& options) {
  boost::system::error_code not_an_address;
  const auto address = boost::asio::ip::make_address(
      options.http.host == "localhost" ? "127.0.0.1" : options.http.host, not_an_address);
  if (!not_an_address && !address.is_loopback() && options.api.token.empty() && !options.insecure)
    throw UserError(
        fmt::format("--host {}: others can reach this address, and there is no token", options.http.host),
        "--token FILE asks every client for the token in FILE; --insecure serves everybody");
  ServedModels models(options.api.runs, options.precisions, options.device);
  for (const std::string& one : options.models) models.add(one);
  Engine engine(options.max_waiting_lines);
  ApiOptions api_options = options.api;
  api_options.max_answer_bytes = options.http.max_body_bytes;
  Api api(engine, models, api_options);
  HttpServer server(options.http, [&](const std::shared_ptr<Exchange>& exchange) { api.handle(exchange); });
  const std::string host = address.is_v6() ? "[" + options.http.host + "]" : options.http.host;
  const std::string url = fmt::format("http://{}:{}", host, server.port());
  log::info("{}: the page and the API (Ctrl-C stops it)", url);
  if (options.started) options.started(url);
  server.run();
}

}  // namespace calque
