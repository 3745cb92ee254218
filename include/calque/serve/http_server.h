// HttpServer: HTTP/1.1 on Boost.Beast with one thread for all connections. It limits sizes, times and the
// number of connections, notices clients that leave, and stops without dropping requests that it has
// accepted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace calque {

struct HttpRequest {
  std::string method;
  std::string path;                            // decoded, without the query
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string client;                                                              // its address
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();  // when it had arrived

  const std::string& header(const std::string& name) const;  // empty where there is none
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Exchange: a request, and the way to answer it: respond() once, or begin_stream(), send() …, end_stream().
// From any thread, at any time; nothing happens once the client is gone.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;
  virtual void respond(HttpResponse response) = 0;
  virtual void begin_stream(HttpResponse head) = 0;
  // Nothing blocks: what a slow reader has not read yet is kept. A `key` lets a later chunk replace an
  // earlier one that is still unsent, so that no more is kept than the whole answer.
  virtual void send(std::string chunk, const std::string& key = "") = 0;
  virtual void end_stream() = 0;
  // Called once, at once if it has happened already, when the client has left before the answer was complete.
  // Each further call is made too.
  virtual void on_gone(std::function<void()> call) = 0;
};
using HttpHandler = std::function<void(std::shared_ptr<Exchange>)>;

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  size_t max_body_bytes = 16 << 20;
  size_t max_header_bytes = 16 << 10;
  size_t max_connections = 2000;
  std::chrono::seconds request_timeout{10};  // for sending a request; large bodies have more
  std::chrono::seconds idle_timeout{60};     // between requests
  std::chrono::seconds write_timeout{30};    // for reading an answer; large ones have more
  size_t slowest_bytes_per_second = 50'000;  // which is what "more" means
  std::chrono::seconds drain_timeout{30};    // after SIGTERM, for what was accepted
};

class HttpServer {
 public:
  // Listens from here on. An address that cannot be used is a UserError.
  HttpServer(const HttpOptions& options, HttpHandler handler);
  ~HttpServer();

  uint16_t port() const;
  size_t connections() const;
  // Serves until SIGINT or SIGTERM, or stop(): accepts no more, answers what was accepted, returns. A second
  // signal ends it at once.
  void run();
  void stop();  // from any thread

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

std::string reason_phrase(int status);
// Decodes %41 and, in a query or a form, + for a space.
std::string decode_url(std::string_view text, bool plus_is_space);
std::string encode_url(std::string_view text);  // for one part of a path
std::map<std::string, std::string> parse_query(std::string_view text);

}  // namespace calque
