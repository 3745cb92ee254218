#include "calque/serve/http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/http/status.hpp>
#include <csignal>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "connection.h"

namespace calque {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

const std::string& HttpRequest::header(const std::string& name) const {
  static const std::string none;
  const auto found = headers.find(name);
  return found == headers.end() ? none : found->second;
}

std::string reason_phrase(int status) {
  return std::string(boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status)));
}

std::string decode_url(std::string_view text, bool plus_is_space) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string encode_url(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '_' || c == '.' || c == '~';
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::map<std::string, std::string> parse_query(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    values[decode_url(one.substr(0, equals), true)] =
        equals == std::string_view::npos ? "" : decode_url(one.substr(equals + 1), true);
  }
  return values;
}

struct HttpServer::Parts {
  Parts(const HttpOptions& given, HttpHandler handle) : options(given), handler(std::move(handle)) {}

  void accept() {
    acceptor.async_accept([this](Error error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || context.draining) return;
      if (error) {  // out of file descriptors, say: clients that are here go on
        retry.expires_after(std::chrono::milliseconds(100));
        retry.async_wait([this](Error aborted) {
          if (!aborted) accept();
        });
        return;
      }
      if (connections.size() < options.max_connections) {
        const auto id = std::make_shared<Connection*>();
        const auto connection = std::make_shared<Connection>(std::move(socket), context, [this, id] {
          connections.erase(*id);
          count = connections.size();
        });
        *id = connection.get();
        connections.insert(*id);
        count = connections.size();
        connection->start();
      }
      accept();
    });
  }

  void drain() {
    if (context.draining) return;
    context.draining = true;
    Error ignored;
    acceptor.close(ignored);
    retry.cancel();
    std::vector<std::shared_ptr<Connection>> all;  // closing one takes it out of the set
    for (Connection* one : connections) all.push_back(one->shared_from_this());
    for (const auto& one : all) one->drain();
    all.clear();
    wait_until_idle(std::chrono::steady_clock::now() + options.drain_timeout);
  }

  void wait_until_idle(std::chrono::steady_clock::time_point deadline) {
    if (connections.empty() || std::chrono::steady_clock::now() > deadline) return io.stop();
    retry.expires_after(std::chrono::milliseconds(20));
    retry.async_wait([this, deadline](Error) { wait_until_idle(deadline); });
  }

  const HttpOptions options;
  const HttpHandler handler;
  ConnectionContext context{options, handler};
  std::unordered_set<Connection*> connections;  // before io: what is pending there may hold the last of them
  std::atomic<size_t> count = 0;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer retry{io};
};

HttpServer::HttpServer(const HttpOptions& options, HttpHandler handler)
    : parts_(std::make_unique<Parts>(options, std::move(handler))) {
  Error error;
  const auto address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error)
    throw UserError(fmt::format("--host {}: not an IP address", options.host),
                    "examples: 127.0.0.1, 0.0.0.0, ::1");
  const tcp::endpoint endpoint(address, options.port);
  tcp::acceptor& acceptor = parts_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    throw UserError(
        fmt::format("{}:{}: {}", options.host, options.port, error.message()),
        error == asio::error::address_in_use ? "another program listens there: choose another --port" : "");
}

HttpServer::~HttpServer() {
  // Connections leave the set when they are destroyed, which happens while the context is.
  std::vector<std::shared_ptr<Connection>> all;
  for (Connection* one : parts_->connections) all.push_back(one->shared_from_this());
  for (const auto& one : all) one->close();
  all.clear();
  parts_->io.restart();
  parts_->io.poll();
}

uint16_t HttpServer::port() const { return parts_->acceptor.local_endpoint().port(); }
size_t HttpServer::connections() const { return parts_->count; }
void HttpServer::stop() {
  asio::post(parts_->io, [this] { parts_->drain(); });
}

void HttpServer::run() {
  asio::signal_set signals(parts_->io, SIGINT, SIGTERM);
  bool asked = false;
  const std::function<void(Error, int)> on_signal = [&](Error error, int) {
    if (error) return;
    if (std::exchange(asked, true)) return parts_->io.stop();
    log::info("stopping: answering what was accepted (again to stop at once)");
    parts_->drain();
    signals.async_wait(on_signal);
  };
  signals.async_wait(on_signal);
  parts_->accept();
  parts_->io.run();
}

}  // namespace calque
