#include "calque/serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <future>
#include <thread>

#include "../../src/serve/api_json.h"
#include "calque/base/error.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

HttpRequest form(const std::string& type, const std::string& body) {
  HttpRequest request;
  request.headers["content-type"] = type;
  request.body = body;
  return request;
}

namespace asio = boost::asio;
namespace http = boost::beast::http;

// A server on a free port that runs until the end of the test.
class RunningServer {
 public:
  RunningServer(HttpOptions options, HttpHandler handler)
      : server_(on_free_port(options), std::move(handler)) {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~RunningServer() {
    server_.stop();
    thread_.join();
  }

  // A connection on which a request was sent.
  asio::ip::tcp::socket connect(const std::string& request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") {
    asio::ip::tcp::socket socket(io_);
    socket.connect({asio::ip::make_address("127.0.0.1"), server_.port()});
    asio::write(socket, asio::buffer(request));
    return socket;
  }

 private:
  static HttpOptions on_free_port(HttpOptions options) {
    options.port = 0;
    return options;
  }
  HttpServer server_;
  asio::io_context io_;
  std::thread thread_;
};

std::string read_body(asio::ip::tcp::socket& socket) {
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  http::read(socket, buffer, parser);
  return parser.get().body();
}

}  // namespace

TEST(HttpServer, AStreamIsCompleteHoweverMuchIsSentAtItsEnd) {
  constexpr size_t count = 500, bytes = 100'000;  // more than a socket's buffers hold
  std::string expected;
  for (size_t i = 0; i < count; ++i) expected += std::string(bytes, static_cast<char>('a' + i % 26));
  RunningServer server({}, [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->begin_stream({200, "", "text/plain"});
    for (size_t i = 0; i < count; ++i) exchange->send(expected.substr(i * bytes, bytes));
    exchange->end_stream();
  });
  auto client = server.connect();
  EXPECT_TRUE(read_body(client) == expected);
}

TEST(HttpServer, AReaderThatStopsIsCutHoweverMuchIsLeft) {
  std::promise<void> gone;
  HttpOptions options;
  options.write_timeout = std::chrono::seconds(1);
  options.slowest_bytes_per_second = 10 << 20;
  RunningServer server(options, [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_gone([&] { gone.set_value(); });
    exchange->respond({200, std::string(100 << 20, 'a'), "text/plain"});
  });
  const auto client = server.connect();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST(HttpServer, EverybodyWhoAskedIsToldThatTheClientHasLeft) {
  std::promise<void> first, second;
  RunningServer server({}, [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_gone([&] { first.set_value(); });
    exchange->on_gone([&] { second.set_value(); });
  });
  server.connect().close();
  for (std::promise<void>* one : {&first, &second})
    EXPECT_EQ(one->get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(HttpServer, ALaterChunkReplacesAnUnsentOneOfTheSameKey) {
  const std::string long_one(50 << 20, 'a');
  RunningServer server({}, [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->begin_stream({200, "", "text/plain"});
    exchange->send(long_one);  // being written from here on
    for (const char* text : {"old", "new"}) exchange->send(text, "key");
    exchange->send("end");
    exchange->end_stream();
  });
  auto client = server.connect();
  EXPECT_TRUE(read_body(client) == long_one + "newend");
}

TEST(HttpServer, ARefusalHasTheFormThatTheClientReads) {
  HttpOptions options;
  options.max_body_bytes = 10;
  RunningServer server(options, [](const std::shared_ptr<Exchange>&) {});
  const auto refusal_of = [&](const std::string& path) {
    const std::string head = " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n";
    auto client = server.connect("POST " + path + head);
    return nlohmann::json::parse(read_body(client));
  };
  const std::string message = "the body is larger than 10 bytes";
  EXPECT_EQ(refusal_of("/v1/translate")["error"],
            nlohmann::json::object({{"message", message}, {"code", 413}}));
  EXPECT_EQ(refusal_of("/v2/translate?a=b"), nlohmann::json::object({{"message", message}}));
  EXPECT_EQ(refusal_of("/translate"), nlohmann::json::object({{"error", message}}));
}

TEST(HttpServer, UrlsAreDecoded) {
  EXPECT_EQ(decode_url("a%20b+c%C3%A9", false), "a b+cé");
  EXPECT_EQ(decode_url("a+b%2b", true), "a b+");
  EXPECT_EQ(decode_url("100%", false), "100%");
  EXPECT_EQ(decode_url("%zz%4", false), "%zz%4");
  EXPECT_THAT(parse_query("a=1&b=%26&c&=d&a=2"), testing::Contains(Pair("b", "&")));
}

TEST(HttpServer, EncodedTextIsOnePartOfAPath) {
  EXPECT_EQ(encode_url("a-b_c.d~1"), "a-b_c.d~1");
  EXPECT_EQ(encode_url("a b/c?d#é%"), "a%20b%2Fc%3Fd%23%C3%A9%25");
  EXPECT_EQ(decode_url(encode_url("a b/c?d#é%+"), false), "a b/c?d#é%+");
}

TEST(HttpServer, FormsOfBothKindsAreRead) {
  EXPECT_THAT(form_fields(form("application/x-www-form-urlencoded", "q=l%27eau&target=en")),
              UnorderedElementsAre(Pair("q", "l'eau"), Pair("target", "en")));
  const std::string body =
      "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: "
      "text/plain\r\n\r\nun\r\n"
      "deux\r\n--x\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nfr\r\n--x--\r\n";
  EXPECT_THAT(
      form_fields(form("multipart/form-data; boundary=x", body)),
      UnorderedElementsAre(Pair("file", "un\r\ndeux"), Pair("file.filename", "a.txt"), Pair("source", "fr")));
  EXPECT_THAT(form_fields(form("multipart/form-data; boundary=\"x\"", body)).size(), 3);
  for (const char* broken : {"", "--x", "--x\r\n", "--x\r\nname=\"a\"", "--x\r\n\r\n\r\n--x--"})
    EXPECT_TRUE(form_fields(form("multipart/form-data; boundary=x", broken)).empty()) << broken;
  EXPECT_TRUE(form_fields(form("text/plain", body)).empty());
}

TEST(HttpServer, ABodyIsJsonOrAFormAndRepeatedNamesAreLists) {
  const auto repeated = body_of(form("application/x-www-form-urlencoded", "text=a&text=b&target_lang=EN"));
  EXPECT_EQ(repeated["text"], nlohmann::json({"a", "b"}));
  EXPECT_EQ(repeated["target_lang"], "EN");
  EXPECT_EQ(body_of(form("application/json", R"({"text": "a"})"))["text"], "a");
  EXPECT_THROW(body_of(form("application/json", std::string(100'000, '['))), ApiError);
}

TEST(HttpServer, AnAddressThatIsTakenIsAUserError) {
  HttpOptions options;
  options.port = 0;
  const HttpServer first(options, [](const std::shared_ptr<Exchange>&) {});
  EXPECT_GT(first.port(), 0);
  options.port = first.port();
  EXPECT_THROW(HttpServer(options, [](const std::shared_ptr<Exchange>&) {}), UserError);
  options.host = "not an address";
  EXPECT_THROW(HttpServer(options, [](const std::shared_ptr<Exchange>&) {}), UserError);
}

TEST(Language, FrenchAndEnglishAreToldApart) {
  EXPECT_EQ(detect_language("Où est la gare ?").first, "fr");
  EXPECT_EQ(detect_language("Where is the station?").first, "en");
  EXPECT_GT(detect_language("Nous sommes dans l'eau.").second, 0.7);
  EXPECT_EQ(detect_language("").second, 0.5);
}

}  // namespace calque
