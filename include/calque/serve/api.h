// Api: the HTTP interface of a server: its routes, who may call them, and what they answer. docs/serve.md
// describes them; /openapi.json lists them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/serve/engine.h"
#include "calque/serve/glossary_store.h"
#include "calque/serve/http_server.h"
#include "calque/serve/request_log.h"
#include "calque/serve/served_models.h"

namespace calque {

struct ApiOptions {
  std::string token;                       // empty: none is needed
  std::vector<std::string> allowed_hosts;  // names in the Host header, besides addresses and localhost
  std::vector<std::string> cors_origins;   // pages of other sites that may call
  std::filesystem::path runs = "runs";
  std::chrono::seconds timeout{300};  // of one request
  size_t max_texts = 10'000;          // of one request
  size_t max_lines = 20'000;          // of one request
  size_t max_line_bytes = 100'000;
  size_t max_answer_bytes = 16 << 20;  // about: the texts' bytes times `nbest`
  int64_t max_beam = 32;               // also of nbest: each beam has its own row in every pass
  bool log_text = false;
};

// A request that cannot be answered as it is.
struct ApiError : std::runtime_error {
  ApiError(int status_code, const std::string& what, std::string field_name = "")
      : std::runtime_error(what), status(status_code), field(std::move(field_name)) {}
  int status;
  std::string field;
  std::string allow = {};   // of status 405: the methods that the address takes
  bool is_lasting = false;  // of status 503: trying again does not help
};

// Thrown to end work that nobody waits for any more.
struct ClientLeft {};
// Throws if nobody waits for an answer any more, it has taken too long, or the server stops.
using Check = std::function<void()>;

struct TextAnswer;  // what a text's translation is answered with
class Background;

class Api {
 public:
  Api(Engine& engine, ServedModels& models, ApiOptions options);
  ~Api();

  void handle(const std::shared_ptr<Exchange>& exchange);

 private:
  using Shared = std::shared_ptr<Exchange>;
  using Parameters = std::map<std::string, std::string>;
  struct Route {
    std::string method, path, summary;
    void (Api::*call)(const Shared& exchange, const Parameters& parameters);
    nlohmann::json answers;        // where all is well: by status, as OpenAPI describes them
    nlohmann::json body = {};      // the request's schema
    std::vector<int> errors = {};  // statuses, besides those of any route
    bool is_open = false;          // needs no token
    bool in_background = false;    // takes a while, and waits for others of its kind
    nlohmann::json query = {};     // the parameters after ?, by name: their schemas
  };
  struct TranslateCall;

  void check_caller(const HttpRequest& request, const Route& route) const;
  const Route& find_route(const HttpRequest& request, Parameters& parameters) const;
  void run(const Shared& exchange, const Route& route, const Parameters& parameters);
  void answer_in_background(const Shared& exchange, std::function<void(const Check& check)> work);
  void check_lines(const std::vector<std::string>& lines, const char* field) const;
  std::chrono::steady_clock::time_point deadline_of(const Shared& exchange) const;
  Check check_of(const Shared& exchange) const;
  void answer_error(const Shared& exchange, std::exception_ptr error);
  ServedModel ready_model(const std::string& name, const std::string& precision);
  static std::vector<Route> all_routes(const std::vector<std::string>& precisions);
  static std::vector<Route> native_routes(const std::vector<std::string>& precisions);
  static std::vector<Route> compatible_routes();
  static std::vector<int> error_statuses(const Route& route);
  static nlohmann::json describe(const Route& route);

  // Native
  void page(const Shared& exchange, const Parameters&);
  void health(const Shared& exchange, const Parameters&);
  void prometheus(const Shared& exchange, const Parameters&);
  void openapi(const Shared& exchange, const Parameters&);
  void list_models(const Shared& exchange, const Parameters&);
  void add_model(const Shared& exchange, const Parameters&);
  void show_model(const Shared& exchange, const Parameters& parameters);
  void remove_model(const Shared& exchange, const Parameters& parameters);
  void translate(const Shared& exchange, const Parameters&);
  void attention(const Shared& exchange, const Parameters&);
  void alternatives(const Shared& exchange, const Parameters&);
  void evaluate(const Shared& exchange, const Parameters&);
  // Runs and experiments
  void list_runs(const Shared& exchange, const Parameters&);
  void show_run(const Shared& exchange, const Parameters& parameters);
  void run_report(const Shared& exchange, const Parameters& parameters);
  void comparison_report(const Shared& exchange, const Parameters& parameters);
  void list_experiments(const Shared& exchange, const Parameters&);
  void show_experiment(const Shared& exchange, const Parameters& parameters);
  // As other servers answer
  void libretranslate(const Shared& exchange, const Parameters&);
  void libretranslate_languages(const Shared& exchange, const Parameters&);
  void libretranslate_detect(const Shared& exchange, const Parameters&);
  void libretranslate_settings(const Shared& exchange, const Parameters&);
  void libretranslate_file(const Shared& exchange, const Parameters&);
  void libretranslate_download(const Shared& exchange, const Parameters& parameters);
  void deepl(const Shared& exchange, const Parameters&);
  void deepl_languages(const Shared& exchange, const Parameters&);
  void deepl_glossary_languages(const Shared& exchange, const Parameters&);
  void deepl_usage(const Shared& exchange, const Parameters&);
  void deepl_add_glossary(const Shared& exchange, const Parameters&);
  void deepl_list_glossaries(const Shared& exchange, const Parameters&);
  void deepl_show_glossary(const Shared& exchange, const Parameters& parameters);
  void deepl_glossary_entries(const Shared& exchange, const Parameters& parameters);
  void deepl_remove_glossary(const Shared& exchange, const Parameters& parameters);
  void openai(const Shared& exchange, const Parameters&);
  void stream_openai(const Shared& exchange, const std::shared_ptr<TranslateCall>& call,
                     const nlohmann::json& head);

  using TextsDone = std::function<void(std::vector<TextAnswer> translations)>;
  void start(const Shared& exchange, std::shared_ptr<TranslateCall> call, TextsDone done);
  void check_call(const TranslateCall& call) const;
  void force_glossary(TranslateCall& call, const TranslationTask& like, const Check& check);
  void fail(const Shared& exchange, const TranslateCall& call, std::exception_ptr error);
  void stream_translation(const Shared& exchange, const std::shared_ptr<TranslateCall>& call);

  Engine& engine_;
  ServedModels& models_;
  const ApiOptions options_;
  const std::vector<Route> routes_;
  RequestLog requests_;
  std::mutex files_mutex_;
  std::map<std::string, std::pair<std::string, std::string>> files_;  // translated files: id → name, content
  std::vector<std::string> file_order_;
  GlossaryStore glossaries_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<Background> background_;
};

// "fr" or "en" by their most frequent words and letters, and how sure that is, from 0 to 1.
std::pair<std::string, double> detect_language(const std::string& text);

}  // namespace calque
