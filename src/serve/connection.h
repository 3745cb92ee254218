// Connection: one client's connection, request after request.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "calque/serve/http_server.h"

namespace calque {

// What the connections of a server share. Used by the server's thread alone.
struct ConnectionContext {
  const HttpOptions& options;
  const HttpHandler& handler;
  bool draining = false;  // every answer closes its connection
};

class ConnectionExchange;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ConnectionContext& context, std::function<void()> closed);
  ~Connection();

  void start();
  void drain();  // closes it, at once where it is idle
  void close();

 private:
  friend class ConnectionExchange;
  struct Chunk {
    std::string data;
    std::string key;
  };

  void wait_for_request(std::chrono::seconds timeout);
  void read_header();
  void read_body();
  void dispatch();
  void watch();
  void refuse(int status, const std::string& message);
  void write_response(HttpResponse response);
  void begin_stream(HttpResponse head);
  void send(Chunk chunk);
  void end_stream();
  void write_next();
  void after_answer();
  void linger();
  std::chrono::seconds with_time_for(std::chrono::seconds least, size_t bytes) const;

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  ConnectionContext& context_;
  std::function<void()> closed_;
  std::string client_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::shared_ptr<ConnectionExchange> exchange_;  // while a request is answered
  std::deque<Chunk> chunks_;                      // to be written
  size_t written_ = 0;                            // bytes of the first chunk
  bool keep_alive_ = false, chunked_ = false, is_head_ = false;
  bool idle_ = true, writing_ = false, ending_ = false;
};

}  // namespace calque
