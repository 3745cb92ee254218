#include "calque/serve/api.h"

#include <algorithm>
#include <sstream>

#include "api_json.h"
#include "background.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "error_answer.h"

namespace calque {

using nlohmann::json;

std::vector<std::string> parts_of_path(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream stream(path);
  for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
  if (path.ends_with('/') && path.size() > 1) parts.emplace_back();
  return parts;
}

std::string json_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Api::Api(Engine& engine, ServedModels& models, ApiOptions options)
    : engine_(engine),
      models_(models),
      options_(std::move(options)),
      routes_(all_routes(models.precisions())),
      background_(std::make_unique<Background>()) {}

Api::~Api() {
  stopping_ = true;
  engine_.stop();  // it calls back
  background_->join();
}

const Api::Route& Api::find_route(const HttpRequest& request, Parameters& parameters) const {
  const auto parts = parts_of_path(request.path);
  std::string other_methods;
  for (const Route& route : routes_) {
    const auto wanted = parts_of_path(route.path);
    if (wanted.size() != parts.size()) continue;
    Parameters found;
    bool matches = true;
    for (size_t i = 0; i < parts.size() && matches; ++i) {
      if (wanted[i].starts_with('{')) {
        found[wanted[i].substr(1, wanted[i].size() - 2)] = parts[i];
        matches = !parts[i].empty();
      } else {
        matches = wanted[i] == parts[i];
      }
    }
    if (!matches) continue;
    if (route.method != request.method) {
      other_methods += (other_methods.empty() ? "" : ", ") + route.method;
      continue;
    }
    parameters = std::move(found);
    return route;
  }
  if (!other_methods.empty()) {
    ApiError error(405, fmt::format("{} takes {}", shorten(request.path, 80), other_methods));
    error.allow = other_methods;
    throw error;
  }
  throw ApiError(404,
                 fmt::format("{}: no such address; /openapi.json lists them", shorten(request.path, 80)));
}

namespace {

// Counts the answer, and adds what every answer has.
class LoggedExchange : public Exchange {
 public:
  LoggedExchange(std::shared_ptr<Exchange> inner, RequestLog& requests,
                 std::vector<std::pair<std::string, std::string>> headers)
      : inner_(std::move(inner)), requests_(requests), headers_(std::move(headers)) {}

  const HttpRequest& request() const override { return inner_->request(); }
  void respond(HttpResponse response) override {
    count(response.status);
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    inner_->respond(std::move(response));
  }
  void begin_stream(HttpResponse head) override {
    status_ = head.status;
    head.headers.insert(head.headers.end(), headers_.begin(), headers_.end());
    inner_->begin_stream(std::move(head));
  }
  void send(std::string chunk, const std::string& key) override { inner_->send(std::move(chunk), key); }
  void end_stream() override {
    count(status_);
    inner_->end_stream();
  }
  void on_gone(std::function<void()> call) override { inner_->on_gone(std::move(call)); }

  std::string route = "none";

 private:
  void count(int status) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    requests_.add(route, status, seconds);
    log::debug("{} {} {} {:.0f} ms", request().client, request().method, route, seconds * 1000);
  }

  std::shared_ptr<Exchange> inner_;
  RequestLog& requests_;
  const std::vector<std::pair<std::string, std::string>> headers_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int status_ = 200;
};

}  // namespace

void Api::handle(const std::shared_ptr<Exchange>& given) {
  const HttpRequest& request = given->request();
  std::vector<std::pair<std::string, std::string>> headers;
  const std::string &origin = request.header("origin"),
                    &asked = request.header("access-control-request-headers");
  if (!origin.empty() && std::find(options_.cors_origins.begin(), options_.cors_origins.end(), origin) !=
                             options_.cors_origins.end())
    headers = {{"Access-Control-Allow-Origin", origin},
               {"Access-Control-Allow-Headers", asked.empty() ? "Content-Type, Authorization" : asked},
               {"Access-Control-Allow-Methods", "GET, POST, DELETE"},
               {"Vary", "Origin"}};
  const auto exchange = std::make_shared<LoggedExchange>(given, requests_, headers);
  try {
    if (request.method == "OPTIONS" && !headers.empty()) return exchange->respond({204, ""});
    Parameters parameters;
    const Route& route = find_route(request, parameters);
    exchange->route = route.path;
    check_caller(request, route);
    run(exchange, route, parameters);
  } catch (...) {
    answer_error(exchange, std::current_exception());
  }
}

void Api::run(const Shared& exchange, const Route& route, const Parameters& parameters) {
  if (!route.in_background) return (this->*route.call)(exchange, parameters);
  answer_in_background(exchange, [this, exchange, &route, parameters](const Check&) {
    (this->*route.call)(exchange, parameters);
  });
}

// By turns, unless nobody waits for the answer any more when its turn comes.
void Api::answer_in_background(const Shared& exchange, std::function<void(const Check& check)> work) {
  const std::string& client = exchange->request().client;
  background_->check_room(client);
  background_->add(client, [this, exchange, check = check_of(exchange), work = std::move(work)] {
    try {
      check();
      work(check);
    } catch (const ClientLeft&) {  // nobody is there to be answered
    } catch (...) {
      answer_error(exchange, std::current_exception());
    }
  });
}

std::chrono::steady_clock::time_point Api::deadline_of(const Shared& exchange) const {
  return exchange->request().begin + options_.timeout;
}

Check Api::check_of(const Shared& exchange) const {
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  exchange->on_gone([gone] { *gone = true; });
  return [this, gone, deadline = deadline_of(exchange)] {
    if (*gone) throw ClientLeft();
    if (stopping_) throw ApiError(503, "the server has stopped");
    if (std::chrono::steady_clock::now() > deadline) throw TimeOver("the request took too long");
  };
}

void Api::answer_error(const Shared& exchange, std::exception_ptr error) {
  const std::string& path = exchange->request().path;
  const ErrorAnswer answer = error_answer(error, path);
  std::vector<std::pair<std::string, std::string>> headers;
  if (!answer.allow.empty()) headers.emplace_back("Allow", answer.allow);
  if (answer.status == 429 || (answer.status == 503 && !answer.is_lasting))
    headers.emplace_back("Retry-After", "1");
  if (answer.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  exchange->respond({answer.status, answer.body(path), "application/json", headers});
}

ServedModel Api::ready_model(const std::string& name, const std::string& precision) {
  std::optional<WeightPrecision> wanted;
  if (!precision.empty()) {
    const auto& names = EnumNames<WeightPrecision>::names;
    const auto found = std::find(std::begin(names), std::end(names), precision);
    if (found == std::end(names))
      throw ApiError(400, "precision: expected float32, bfloat16 or int8", "precision");
    wanted = static_cast<WeightPrecision>(found - std::begin(names));
    const auto served = models_.precisions();
    if (std::find(served.begin(), served.end(), precision) == served.end())
      throw ApiError(400,
                     fmt::format("precision: {0} is not served here; calque serve --precision {1},{0} would",
                                 precision, fmt::join(served, ",")),
                     "precision");
  }
  const auto model = models_.find(name, wanted);
  if (!model) {
    std::vector<std::string> known;
    for (const ServedModel& one : models_.list()) known.push_back(one.name);
    throw ApiError(404,
                   fmt::format("model {}: not served here{}", shorten(name, 60), did_you_mean(name, known)),
                   "model");
  }
  if (model->state == ModelState::failed) {
    ApiError error(503, fmt::format("model {}: {}", model->name, model->error), "model");
    error.is_lasting = true;
    throw error;
  }
  if (model->state == ModelState::loading)
    throw ApiError(503, fmt::format("model {} is still loading", model->name), "model");
  return *model;
}

}  // namespace calque
