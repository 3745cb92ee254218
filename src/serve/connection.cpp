#include "connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "error_answer.h"

namespace calque {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Error = beast::error_code;

constexpr size_t pipelined_bytes = 64 << 10;  // read ahead while a request is answered
constexpr size_t written_at_once = 1 << 20;  // each with a time limit, so that a reader that stops is noticed

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// The connection has ended: there is nobody to answer.
bool is_broken(Error error) {
  return error && (error == http::error::end_of_stream || error == http::error::partial_message ||
                   error.category() == asio::error::get_misc_category() ||
                   error.category() == boost::system::system_category());
}

std::string head_of(const HttpResponse& response, bool keep_alive, const std::string& length) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nServer: calque\r\nContent-Type: {}\r\n{}\r\n", response.status,
                  reason_phrase(response.status), response.content_type, length);
  head += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  head += "X-Content-Type-Options: nosniff\r\n";
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

}  // namespace

// The face that handlers see. Calls come from any thread and are passed on to the server's.
class ConnectionExchange : public Exchange, public std::enable_shared_from_this<ConnectionExchange> {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, HttpRequest request)
      : connection_(std::move(connection)), request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }
  void respond(HttpResponse response) override {
    pass_on([response = std::move(response)](Connection& connection) mutable {
      connection.write_response(std::move(response));
    });
  }
  void begin_stream(HttpResponse head) override {
    pass_on([head = std::move(head)](Connection& connection) mutable {
      connection.begin_stream(std::move(head));
    });
  }
  void send(std::string chunk, const std::string& key) override {
    pass_on([chunk = std::move(chunk), key](Connection& connection) mutable {
      connection.send({std::move(chunk), std::move(key)});
    });
  }
  void end_stream() override {
    pass_on([](Connection& connection) { connection.end_stream(); });
  }
  void on_gone(std::function<void()> call) override {
    std::unique_lock lock(mutex_);
    if (!gone_) {
      when_gone_.push_back(std::move(call));
      return;
    }
    lock.unlock();
    call();
  }

  // By the connection: the client has left, or the answer is complete.
  void leave(bool client_left) {
    std::vector<std::function<void()>> calls;
    {
      const std::lock_guard lock(mutex_);
      if (!connection_) return;
      connection_.reset();
      gone_ = client_left;
      calls = std::exchange(when_gone_, {});
    }
    if (!client_left) return;
    for (const auto& call : calls) call();
  }

 private:
  template <class Call>
  void pass_on(Call call) {
    const std::lock_guard lock(mutex_);
    if (!connection_) return;
    asio::post(connection_->stream_.get_executor(),
               [self = shared_from_this(), connection = connection_, call = std::move(call)]() mutable {
                 if (connection->exchange_ == self) call(*connection);
               });
  }

  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  const HttpRequest request_;
  std::vector<std::function<void()>> when_gone_;
  bool gone_ = false;
};

Connection::Connection(asio::ip::tcp::socket socket, ConnectionContext& context, std::function<void()> closed)
    : stream_(std::move(socket)), context_(context), closed_(std::move(closed)) {
  Error ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto address = stream_.socket().remote_endpoint(ignored);
  if (!ignored) client_ = address.address().to_string();
}

Connection::~Connection() { closed_(); }

void Connection::start() { wait_for_request(context_.options.request_timeout); }

void Connection::drain() {
  keep_alive_ = false;
  if (idle_ && buffer_.size() == 0) close();
}

void Connection::close() {
  Error ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
  if (exchange_) std::exchange(exchange_, nullptr)->leave(true);
}

std::chrono::seconds Connection::with_time_for(std::chrono::seconds least, size_t bytes) const {
  return least + std::chrono::seconds(bytes / context_.options.slowest_bytes_per_second);
}

// Waits for the first byte: a connection may be idle for longer than a request may take to arrive.
void Connection::wait_for_request(std::chrono::seconds timeout) {
  idle_ = true;
  if (buffer_.size() > 0) return read_header();  // pipelined
  stream_.expires_after(timeout);
  stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](Error error, size_t bytes) {
    if (error || bytes == 0) return self->close();
    self->buffer_.commit(bytes);
    self->read_header();
  });
}

void Connection::read_header() {
  idle_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(context_.options.max_header_bytes));
  parser_->body_limit(context_.options.max_body_bytes);
  stream_.expires_after(context_.options.request_timeout);
  http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](Error error, size_t) {
    if (error == http::error::header_limit)
      return self->refuse(
          431, fmt::format("the header is longer than {} bytes", self->context_.options.max_header_bytes));
    if (error == http::error::body_limit)
      return self->refuse(
          413, fmt::format("the body is larger than {} bytes", self->context_.options.max_body_bytes));
    if (error == beast::error::timeout) return self->refuse(408, "the request took too long to arrive");
    if (is_broken(error)) return self->close();
    if (error) return self->refuse(400, "this is not an HTTP request: " + error.message());
    self->read_body();
  });
}

void Connection::read_body() {
  const auto length = parser_->content_length();
  if (length && *length > context_.options.max_body_bytes)
    return refuse(413, fmt::format("the body is larger than {} bytes", context_.options.max_body_bytes));
  const auto read = [self = shared_from_this()](Error written) {
    if (written) return self->close();
    http::async_read(self->stream_, self->buffer_, *self->parser_, [self](Error error, size_t) {
      if (error == http::error::body_limit)
        return self->refuse(
            413, fmt::format("the body is larger than {} bytes", self->context_.options.max_body_bytes));
      if (error == beast::error::timeout) return self->refuse(408, "the request took too long to arrive");
      if (is_broken(error)) return self->close();
      if (error) return self->refuse(400, "the body is damaged: " + error.message());
      self->dispatch();
    });
  };
  stream_.expires_after(with_time_for(context_.options.request_timeout, length.value_or(0)));
  if (lower(std::string(parser_->get()[http::field::expect])) != "100-continue") return read({});
  static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(go_on), [read](Error error, size_t) { read(error); });
}

void Connection::dispatch() {
  auto& message = parser_->get();
  keep_alive_ = message.keep_alive() && !context_.draining;
  chunked_ = message.version() >= 11;
  HttpRequest request;
  request.method = std::string(message.method_string());
  is_head_ = request.method == "HEAD";
  if (is_head_) request.method = "GET";
  const std::string target(message.target());
  const size_t question = target.find('?');
  request.path = decode_url(std::string_view(target).substr(0, question), false);
  if (question != std::string::npos)
    request.query = parse_query(std::string_view(target).substr(question + 1));
  for (const auto& field : message) {
    std::string& value = request.headers[lower(field.name_string())];
    value += (value.empty() ? "" : ", ") + std::string(field.value());
  }
  request.body = std::move(message.body());
  request.client = client_;
  parser_.reset();
  exchange_ = std::make_shared<ConnectionExchange>(shared_from_this(), std::move(request));
  stream_.expires_never();
  watch();
  context_.handler(exchange_);
}

// Notices a client that leaves while its request is answered. What it sends meanwhile is the next request.
void Connection::watch() {
  stream_.socket().async_wait(
      asio::ip::tcp::socket::wait_read, [self = shared_from_this(), exchange = exchange_](Error error) {
        if (error || self->exchange_ != exchange || self->ending_) return;
        Error failed;
        const size_t available = self->stream_.socket().available(failed);
        if (failed || available == 0) return self->close();
        const size_t room = pipelined_bytes - std::min(pipelined_bytes, self->buffer_.size());
        if (room == 0) return;
        const size_t bytes =
            self->stream_.socket().read_some(self->buffer_.prepare(std::min(room, available)), failed);
        if (failed) return self->close();
        self->buffer_.commit(bytes);
        self->watch();
      });
}

// For what is not a proper request: an answer, then the end.
void Connection::refuse(int status, const std::string& message) {
  keep_alive_ = false;
  const std::string target(parser_->get().target());  // empty where not even the first line was read
  const std::string path = decode_url(target.substr(0, target.find('?')), false);
  write_response({status, ErrorAnswer{status, message}.body(path)});
}

void Connection::write_response(HttpResponse response) {
  if (writing_ || ending_) return;
  ending_ = true;
  keep_alive_ = keep_alive_ && !context_.draining;
  std::string text = head_of(response, keep_alive_, fmt::format("Content-Length: {}", response.body.size()));
  if (!is_head_) text += response.body;
  chunks_.push_back({std::move(text), ""});
  write_next();
}

void Connection::begin_stream(HttpResponse head) {
  keep_alive_ = keep_alive_ && chunked_;
  chunks_.push_back(
      {head_of(head, keep_alive_, chunked_ ? "Transfer-Encoding: chunked" : "Cache-Control: no-store"), ""});
  write_next();
}

void Connection::send(Chunk chunk) {
  if (ending_ || chunk.data.empty() || is_head_) return;
  if (chunked_) chunk.data = fmt::format("{:x}\r\n{}\r\n", chunk.data.size(), chunk.data);
  const auto same =
      std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& one) { return one.key == chunk.key; });
  if (!chunk.key.empty() && same != chunks_.end()) {
    *same = std::move(chunk);
    return;
  }
  chunks_.push_back(std::move(chunk));
  write_next();
}

void Connection::end_stream() {
  if (ending_) return;
  if (chunked_ && !is_head_) chunks_.push_back({"0\r\n\r\n", ""});
  ending_ = true;
  write_next();
}

void Connection::write_next() {
  if (writing_) return;
  if (chunks_.empty()) {
    if (ending_) after_answer();
    return;
  }
  writing_ = true;
  // Small chunks are written together: each write has a time limit of its own.
  std::string data = std::move(chunks_.front().data);
  chunks_.pop_front();
  for (; !chunks_.empty() && data.size() + chunks_.front().data.size() <= written_at_once;
       chunks_.pop_front())
    data += chunks_.front().data;
  chunks_.push_front({std::move(data), ""});  // without a key: it can no longer be replaced
  const auto part = asio::buffer(asio::buffer(chunks_.front().data) + written_, written_at_once);
  stream_.expires_after(with_time_for(context_.options.write_timeout, part.size()));
  asio::async_write(stream_, part, [self = shared_from_this()](Error error, size_t bytes) {
    self->writing_ = false;
    if (error) return self->close();
    if (self->chunks_.empty()) return;  // closed meanwhile
    self->written_ += bytes;
    if (self->written_ == self->chunks_.front().data.size()) {
      self->chunks_.pop_front();
      self->written_ = 0;
    }
    self->stream_.expires_never();
    self->write_next();
  });
}

void Connection::after_answer() {
  ending_ = false;
  if (exchange_) std::exchange(exchange_, nullptr)->leave(false);
  if (!keep_alive_) return linger();
  Error ignored;
  stream_.socket().cancel(ignored);  // watch()
  wait_for_request(context_.options.idle_timeout);
}

// Lets the client read the answer before the connection is closed under what it is still sending.
void Connection::linger() {
  Error ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(std::chrono::seconds(2));
  buffer_.clear();
  const auto discard = std::make_shared<std::function<void(Error, size_t)>>();
  *discard = [self = shared_from_this(), weak = std::weak_ptr(discard)](Error error, size_t) {
    const auto again = weak.lock();
    if (error || !again) return self->close();
    self->stream_.async_read_some(self->buffer_.prepare(16384),
                                  [again](Error e, size_t n) { (*again)(e, n); });
  };
  (*discard)({}, 0);
}

}  // namespace calque
