#include "calque/serve/api.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <sstream>

#include "api_json.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "error_answer.h"

namespace calque {

using nlohmann::json;

namespace {

// Takes as long whatever the texts are.
bool equal_in_constant_time(const std::string& a, const std::string& b) {
  unsigned different = static_cast<unsigned>(a.size() ^ b.size());
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return different == 0;
}

std::string host_name(const std::string& header) {
  if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.rfind(':') == header.find(':') ? header.find(':') : std::string::npos);
}

// The token as each kind of client sends it.
std::string given_token(const HttpRequest& request) {
  const std::string& header = request.header("authorization");
  for (const std::string_view scheme : {"bearer ", "deepl-auth-key "}) {  // in any case (RFC 9110)
    if (lower_ascii(header.substr(0, scheme.size())) == scheme) return header.substr(scheme.size());
  }
  if (request.path == "/translate" || request.path == "/detect" || request.path == "/translate_file") {
    const json body =
        json::parse(request.body, nullptr, false);  // LibreTranslate's clients send it in the body
    if (body.is_object() && body.contains("api_key") && body["api_key"].is_string())
      return body["api_key"].get<std::string>();
    const auto form = form_fields(request);
    const auto found = form.find("api_key");
    if (found != form.end()) return found->second;
  }
  return "";
}

}  // namespace

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

struct Api::Background {
  boost::asio::thread_pool threads{2};
};

Api::Api(Engine& engine, ServedModels& models, ApiOptions options)
    : engine_(engine),
      models_(models),
      options_(std::move(options)),
      routes_(all_routes(models.precisions())),
      background_(std::make_unique<Background>()) {}

Api::~Api() {
  stopping_ = true;
  engine_.stop();  // it calls back
  background_->threads.join();
}

// Who may call: DNS rebinding and pages of other sites are refused, then the token is checked.
void Api::check_caller(const HttpRequest& request, const Route& route) const {
  const std::string host = host_name(request.header("host"));
  boost::system::error_code not_an_address;
  boost::asio::ip::make_address(host, not_an_address);
  const auto lists = [](const std::vector<std::string>& list, const std::string& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  if (not_an_address && host != "localhost" && !lists(options_.allowed_hosts, host))
    throw ApiError(
        403, fmt::format("the host name \"{}\" is not served here; see --allow-host", shorten(host, 60)));
  const std::string& origin = request.header("origin");
  const size_t scheme = origin.find("://");
  const bool same_origin = scheme != std::string::npos && origin.substr(scheme + 3) == request.header("host");
  if (!origin.empty() && !same_origin && !lists(options_.cors_origins, origin))
    throw ApiError(403, "pages of other sites may not call this server; see --cors");
  if (!route.is_open && !options_.token.empty() &&
      !equal_in_constant_time(given_token(request), options_.token))
    throw ApiError(unknown_caller_status(route.path),
                   "the token is missing or wrong: Authorization: Bearer TOKEN");
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
  const std::string& origin = request.header("origin");
  if (!origin.empty() && std::find(options_.cors_origins.begin(), options_.cors_origins.end(), origin) !=
                             options_.cors_origins.end())
    headers = {{"Access-Control-Allow-Origin", origin},
               {"Access-Control-Allow-Headers", "Content-Type, Authorization"},
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
  if (waiting_in_background_ >= max_in_background) throw QueueFull("too many requests are waiting");
  answer_in_background(exchange,
                       [this, exchange, &route, parameters] { (this->*route.call)(exchange, parameters); });
}

void Api::answer_in_background(const Shared& exchange, std::function<void()> work) {
  in_background([this, exchange, work = std::move(work)] {
    try {
      work();
    } catch (const ClientLeft&) {  // nobody is there to be answered
    } catch (...) {
      answer_error(exchange, std::current_exception());
    }
  });
}

void Api::in_background(std::function<void()> work) {
  ++waiting_in_background_;
  boost::asio::post(background_->threads, [this, work = std::move(work)] {
    at::get_num_threads();   // whose first call would set the next line back
    omp_set_num_threads(1);  // of this thread: translating goes on meanwhile
    work();
    --waiting_in_background_;
  });
}

void Api::answer_error(const Shared& exchange, std::exception_ptr error) {
  const std::string& path = exchange->request().path;
  const ErrorAnswer answer = error_answer(error, path);
  std::vector<std::pair<std::string, std::string>> headers;
  if (!answer.allow.empty()) headers.emplace_back("Allow", answer.allow);
  if (answer.status == 429 || answer.status == 503) headers.emplace_back("Retry-After", "1");
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
  if (model->state == ModelState::failed)
    throw ApiError(503, fmt::format("model {}: {}", model->name, model->error), "model");
  if (model->state == ModelState::loading)
    throw ApiError(503, fmt::format("model {} is still loading", model->name), "model");
  return *model;
}

}  // namespace calque
