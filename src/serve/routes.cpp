// The list of routes.
#include "answers.h"
#include "api_json.h"
#include "compatible_answers.h"
#include "request_schemas.h"

namespace calque {

using nlohmann::json;
namespace schemas = request_schemas;

namespace {

// An answer without JSON: a page, a text, a stream of events, or, without a type, nothing.
json plain_answer(const std::string& type, int status = 200) {
  json answer = {{"description", "done"}};
  if (!type.empty()) answer["content"][type] = json::object();
  json all;
  all[std::to_string(status)] = answer;
  return all;
}

// The JSON of a result.
template <class Result>
json answer_with(int status = 200) {
  json all = plain_answer("application/json", status);
  all[std::to_string(status)]["content"]["application/json"]["schema"] = schema_of<Result>();
  return all;
}

template <class Result>
json answer_or_stream() {
  json all = answer_with<Result>();
  all["200"]["content"]["text/event-stream"] = json::object();
  return all;
}

json health_answer() {
  json all = answer_with<HealthAnswer>(200);
  all.update(answer_with<HealthAnswer>(503));
  all["503"]["description"] = "no model has answered yet, or none can";
  return all;
}

const json no_body;
const std::vector<int> no_more = {}, name_taken = {409};  // errors, besides those that any route may answer
// There is no model of this name, it is busy, it is not loaded, or it took too long.
const std::vector<int> of_models = {404, 429, 503, 504};
constexpr bool needs_no_token = true, needs_token = false, takes_a_while = true, is_quick = false;

}  // namespace

std::vector<Api::Route> Api::native_routes(const std::vector<std::string>& precisions) {
  const json html = plain_answer("text/html");
  return {
      {"GET", "/", "the page", &Api::page, html, no_body, no_more, needs_no_token},
      {"GET", "/v1/health", "ready once a model has answered", &Api::health, health_answer(), no_body,
       no_more, needs_no_token},
      {"GET", "/metrics", "counters for Prometheus", &Api::prometheus, plain_answer("text/plain")},
      {"GET", "/openapi.json", "this list", &Api::openapi, answer_with<AnyMembers>(), no_body, no_more,
       needs_no_token},
      {"GET", "/v1/models", "the models", &Api::list_models, answer_with<ModelsAnswer>()},
      {"POST", "/v1/models", "load another model", &Api::add_model, answer_with<StateAnswer>(202),
       schemas::load_model(), name_taken},
      {"GET", "/v1/models/{name}", "as OpenAI: whether there is a model", &Api::show_model,
       answer_with<OpenaiModel>()},
      {"DELETE", "/v1/models/{name}", "remove a model", &Api::remove_model, answer_with<RemovedAnswer>()},
      {"POST", "/v1/translate", "translate", &Api::translate, answer_or_stream<TranslateAnswer>(),
       schemas::translate(precisions), of_models},
      {"POST", "/v1/attention", "the attention of a translation", &Api::attention,
       answer_with<AttentionAnswer>(), schemas::attention(precisions), of_models, needs_token, takes_a_while},
      {"POST", "/v1/alternatives", "other words at a place of a translation", &Api::alternatives,
       answer_with<AlternativesAnswer>(), schemas::alternatives(precisions), of_models, needs_token,
       takes_a_while},
      {"POST", "/v1/evaluate", "BLEU, chrF and TER", &Api::evaluate, answer_with<EvaluationAnswer>(),
       schemas::evaluate(precisions), of_models},
      {"GET", "/v1/runs", "the runs and comparisons", &Api::list_runs, answer_with<RunsAnswer>(), no_body,
       no_more, needs_token, takes_a_while},
      {"GET", "/v1/runs/{name}", "a run's configuration and metrics", &Api::show_run,
       answer_with<RunAnswer>(), no_body, no_more, needs_token, takes_a_while, schemas::run_query()},
      {"GET", "/v1/runs/{name}/report", "a run's report", &Api::run_report, html, no_body, no_more,
       needs_token, takes_a_while},
      {"GET", "/v1/comparisons/{name}", "a comparison's report", &Api::comparison_report, html, no_body,
       no_more, needs_token, takes_a_while},
      {"GET", "/v1/experiments", "the attention experiments", &Api::list_experiments,
       answer_with<ExperimentsAnswer>()},
      {"POST", "/v1/experiments/{name}", "run an experiment", &Api::show_experiment,
       answer_with<ExperimentAnswer>(), schemas::experiment(), no_more, needs_token, takes_a_while},
  };
}

std::vector<Api::Route> Api::compatible_routes() {
  return {
      {"POST", "/translate", "as LibreTranslate", &Api::libretranslate, answer_with<LibreTranslation>(),
       schemas::libretranslate(), of_models},
      {"GET", "/languages", "as LibreTranslate", &Api::libretranslate_languages,
       answer_with<std::vector<LibreLanguage>>(), no_body, no_more, needs_no_token},
      {"POST", "/detect", "as LibreTranslate", &Api::libretranslate_detect,
       answer_with<std::vector<LibreDetection>>(), schemas::libretranslate_detect()},
      {"GET", "/frontend/settings", "as LibreTranslate", &Api::libretranslate_settings,
       answer_with<LibreSettings>(), no_body, no_more, needs_no_token},
      {"POST", "/translate_file", "as LibreTranslate: text files", &Api::libretranslate_file,
       answer_with<LibreFile>(), schemas::libretranslate_file(), of_models},
      {"GET", "/download_file/{id}/{name}", "a translated file", &Api::libretranslate_download,
       plain_answer("text/plain"), no_body, no_more, needs_no_token},
      {"POST", "/v2/translate", "as DeepL", &Api::deepl, answer_with<DeeplTranslations>(), schemas::deepl(),
       of_models},
      {"GET", "/v2/languages", "as DeepL", &Api::deepl_languages, answer_with<std::vector<DeeplLanguage>>(),
       no_body, no_more, needs_token, is_quick, schemas::deepl_languages_query()},
      {"GET", "/v2/glossary-language-pairs", "as DeepL", &Api::deepl_glossary_languages,
       answer_with<DeeplGlossaryLanguages>()},
      {"GET", "/v2/usage", "as DeepL", &Api::deepl_usage, answer_with<DeeplUsage>()},
      {"POST", "/v2/glossaries", "as DeepL: add a glossary", &Api::deepl_add_glossary,
       answer_with<DeeplGlossary>(201), schemas::deepl_glossary()},
      {"GET", "/v2/glossaries", "as DeepL: the glossaries", &Api::deepl_list_glossaries,
       answer_with<DeeplGlossaries>()},
      {"GET", "/v2/glossaries/{id}", "as DeepL: a glossary", &Api::deepl_show_glossary,
       answer_with<DeeplGlossary>()},
      {"GET", "/v2/glossaries/{id}/entries", "as DeepL: its terms", &Api::deepl_glossary_entries,
       plain_answer("text/tab-separated-values")},
      {"DELETE", "/v2/glossaries/{id}", "as DeepL: remove a glossary", &Api::deepl_remove_glossary,
       plain_answer("", 204)},
      {"POST", "/v1/chat/completions", "as OpenAI: the last message is translated", &Api::openai,
       answer_or_stream<ChatAnswer>(), schemas::openai(), of_models},
  };
}

std::vector<Api::Route> Api::all_routes(const std::vector<std::string>& precisions) {
  std::vector<Route> all = native_routes(precisions);
  for (Route& route : compatible_routes()) all.push_back(std::move(route));
  return all;
}

}  // namespace calque
