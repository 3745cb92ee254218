// ApiTest: the API with a small model, asked without HTTP.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../../src/serve/api_json.h"
#include "calque/serve/api.h"
#include "checkpoint/small_checkpoint.h"
#include "schema_check.h"
#include "temporary_folder.h"

namespace calque {

// An exchange without a connection: it keeps the answer.
class KeptExchange : public Exchange {
 public:
  explicit KeptExchange(HttpRequest request) : request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }
  void respond(HttpResponse response) override { answer_.set_value(std::move(response)); }
  void begin_stream(HttpResponse head) override { streamed_ = std::move(head); }
  void send(std::string chunk, const std::string&) override { streamed_.body += chunk; }
  void end_stream() override { answer_.set_value(streamed_); }
  void on_gone(std::function<void()> call) override {
    const std::lock_guard lock(mutex_);
    if (gone_) return call();
    when_gone_.push_back(std::move(call));
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    for (const auto& call : when_gone_) call();
  }
  bool is_answered() const { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  HttpResponse wait() { return future_.get(); }

 private:
  const HttpRequest request_;
  std::mutex mutex_;
  std::vector<std::function<void()>> when_gone_;
  bool gone_ = false;
  HttpResponse streamed_;
  std::promise<HttpResponse> answer_;
  std::shared_future<HttpResponse> future_ = answer_.get_future();
};

struct Question {
  std::string method, route;
  std::string path = {};  // empty: the route's
  std::string body = {};
  int status = 200;
  std::map<std::string, std::string> headers = {};
  std::string client = "test";
};

class ApiTest : public testing::Test {
 protected:
  ApiTest() {
    models_.add(own_checkpoint(folder_).string());
    models_.wait_until_loaded();
    std::filesystem::create_directories(folder_ / "runs/one");
    std::filesystem::create_directories(folder_ / "runs/comparisons/two");
    folder_.write("runs/one/config.yaml", "run: one\n");
    folder_.write("runs/one/metrics.jsonl", "{\"step\": 5, \"loss\": 1.5}\n");
    folder_.write("runs/one/report.html", "<p>");
    folder_.write("runs/comparisons/two/report.html", "<p>");
    document_ = nlohmann::json::parse(ask({"GET", "/openapi.json"}).body);
  }

  HttpResponse ask(const Question& question) { return sent(api_, question)->wait(); }

  // Without waiting for the answer.
  static std::shared_ptr<KeptExchange> sent(Api& api, const Question& question) {
    const std::string target = question.path.empty() ? question.route : question.path;
    HttpRequest request;
    request.method = question.method;
    request.path = target.substr(0, target.find('?'));
    if (target.find('?') != std::string::npos)
      request.query = parse_query(target.substr(target.find('?') + 1));
    request.headers = question.headers;
    request.headers.emplace("host", "localhost");
    request.headers.emplace("authorization", "Bearer token");
    request.body = question.body;
    request.client = question.client;
    const auto exchange = std::make_shared<KeptExchange>(std::move(request));
    api.handle(exchange);
    return exchange;
  }

  // The answer to a question, which has to be as the description of its route says.
  nlohmann::json checked(const Question& question) {
    const HttpResponse answer = ask(question);
    const std::string name = lower_ascii(question.method) + " " + question.route;
    EXPECT_EQ(answer.status, question.status) << name << ": " << answer.body;
    if (answer.status < 400) answered_.insert(name);
    const nlohmann::json& responses =
        document_.at("paths").at(question.route).at(lower_ascii(question.method)).at("responses");
    const std::string status = std::to_string(answer.status);
    if (!responses.contains(status)) {
      ADD_FAILURE() << name << ": status " << status << " is not described";
      return {};
    }
    if (!responses.at(status).contains("content")) {
      EXPECT_EQ(answer.body, "") << name;
      return {};
    }
    const std::string type = answer.content_type.substr(0, answer.content_type.find(';'));
    const nlohmann::json& content = responses.at(status).at("content");
    if (!content.contains(type)) {
      ADD_FAILURE() << name << ": " << type << " is not described";
      return {};
    }
    if (type != "application/json") return answer.body;
    const nlohmann::json value = nlohmann::json::parse(answer.body);
    EXPECT_EQ(SchemaCheck(document_).difference(value, content.at(type).at("schema")), "") << name;
    return value;
  }

  nlohmann::json translations(const nlohmann::json& body) {
    return checked({"POST", "/v1/translate", "", body.dump()}).at("translations");
  }

  static ApiOptions options_of(const TemporaryFolder& folder) {
    ApiOptions options;
    options.token = "token";
    options.runs = folder / "runs";
    return options;
  }

  const TemporaryFolder folder_;
  ServedModels models_{folder_ / "runs", {WeightPrecision::float32, WeightPrecision::bfloat16}};
  Engine engine_{1000};
  Api api_{engine_, models_, options_of(folder_)};
  nlohmann::json document_;
  std::set<std::string> answered_;  // routes, with success
};

}  // namespace calque
