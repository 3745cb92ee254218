// The description of the routes for clients (OpenAPI 3.1).
#include <algorithm>

#include "api_json.h"
#include "error_answer.h"

namespace calque {

using nlohmann::json;

namespace {

const char* meaning_of(int status) {
  switch (status) {
    case 400:
      return "the request is wrong";
    case 401:
      return "the token is missing or wrong";
    case 403:
      return "this host name or site is not allowed, or the server has no token";
    case 404:
      return "there is none of this name";
    case 408:
      return "the request took too long to arrive";
    case 409:
      return "there is one of this name already";
    case 413:
      return "the request is too large";
    case 429:
      return "too many requests are waiting: try again after Retry-After seconds";
    case 431:
      return "the request's header is too large";
    case 503:
      return "the model is not loaded: try again after Retry-After seconds, if the answer has that";
    case 504:
      return "the request took too long";
    default:
      return "it failed";
  }
}

json error_response(int status, ErrorForm form) {
  json response = {{"description", meaning_of(status)}};
  response["content"]["application/json"]["schema"]["$ref"] =
      fmt::format("#/components/schemas/{}", name_of(form));
  return response;
}

json parameters_of(const std::string& path, const json& query) {
  json parameters = json::array();
  for (const auto& [name, schema] : query.items())
    parameters.push_back({{"name", name}, {"in", "query"}, {"required", false}, {"schema", schema}});
  for (const std::string& part : parts_of_path(path)) {
    if (!part.starts_with('{')) continue;
    json parameter = {{"name", part.substr(1, part.size() - 2)}, {"in", "path"}, {"required", true}};
    parameter["schema"]["type"] = "string";
    parameters.push_back(parameter);
  }
  return parameters;
}

// The forms of a request's body.
std::vector<const char*> body_types(const std::string& path) {
  if (path == "/translate_file") return {"multipart/form-data"};
  const ErrorForm form = error_form(path);
  if (form != ErrorForm::deepl && form != ErrorForm::libretranslate) return {"application/json"};
  return {"application/json", "application/x-www-form-urlencoded"};
}

}  // namespace

std::vector<int> Api::error_statuses(const Route& route) {
  std::vector<int> all = {400, 403, 408, 413, 431, 500};
  all.insert(all.end(), route.errors.begin(), route.errors.end());
  if (!route.is_open && unknown_caller_status(route.path) != 403) all.push_back(401);
  if (route.in_background) all.push_back(429);
  if (route.path.find('{') != std::string::npos) all.push_back(404);
  return all;
}

json Api::describe(const Route& route) {
  json operation = {{"summary", route.summary}, {"responses", route.answers}};
  for (const int status : error_statuses(route))
    operation["responses"][std::to_string(status)] = error_response(status, error_form(route.path));
  if (!route.body.is_null()) {
    operation["requestBody"]["required"] = true;
    for (const char* type : body_types(route.path))
      operation["requestBody"]["content"][type]["schema"] = route.body;
  }
  const json parameters = parameters_of(route.path, route.query);
  if (!parameters.empty()) operation["parameters"] = parameters;
  if (!route.is_open) operation["security"] = json::array({{{"token", json::array()}}});
  if (!route.is_open && error_form(route.path) == ErrorForm::deepl)
    operation["security"].push_back({{"deepl", json::array()}});
  return operation;
}

void Api::openapi(const Shared& exchange, const Parameters&) {
  json document = {{"openapi", "3.1.0"}, {"info", {{"title", "calque"}, {"version", "1"}}}};
  for (const Route& route : routes_)
    document["paths"][route.path][lower_ascii(route.method)] = describe(route);
  json& components = document["components"];
  components["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  components["securitySchemes"]["deepl"] = {{"type", "apiKey"},
                                            {"in", "header"},
                                            {"name", "Authorization"},
                                            {"description", "DeepL-Auth-Key, a space and the token"}};
  for (const ErrorForm form :
       {ErrorForm::native, ErrorForm::libretranslate, ErrorForm::deepl, ErrorForm::openai})
    components["schemas"][std::string(name_of(form))] = error_schema(form);
  exchange->respond({200, json_text(document)});
}

}  // namespace calque
