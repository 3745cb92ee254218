// The routes of the page, the server's state and its models.
#include <unistd.h>

#include <fstream>
#include <optional>

#include "api_json.h"
#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/model/decoder.h"
#include "page.h"

namespace calque {

namespace {

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

ModelAnswer model_answer(const ServedModel& model, std::optional<double> sentences_per_second) {
  ModelAnswer answer{model.name, model.state, model.precision};
  answer.bleu = {model.bleu};
  if (model.bleu) answer.bleu_on = {model.bleu_on};
  answer.sentences_per_second = {sentences_per_second};
  if (model.state == ModelState::failed) answer.error = model.error;
  if (model.state != ModelState::ready) return answer;
  const Decoder& decoder = model.translator->decoder();
  answer.parameters = decoder.parameter_count();
  answer.bytes = weight_bytes(decoder);
  answer.layers = decoder.config().layers;
  answer.heads = decoder.config().heads;
  return answer;
}

}  // namespace

void Api::page(const Shared& exchange, const Parameters&) {
  const std::string nonce = random_name();
  std::string html(page::embedded_files[0].content);
  for (size_t at = html.find("{{nonce}}"); at != std::string::npos; at = html.find("{{nonce}}", at))
    html.replace(at, 9, nonce);
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; img-src 'self' "
      "data:; "
      "frame-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      nonce);
  exchange->respond({200,
                     html,
                     "text/html; charset=utf-8",
                     {{"Content-Security-Policy", policy},
                      {"Cache-Control", "no-store"},
                      {"Referrer-Policy", "no-referrer"}}});
}

void Api::health(const Shared& exchange, const Parameters&) {
  const ModelState state = models_.default_state();
  exchange->respond({state == ModelState::ready ? 200 : 503, json_text(json_of(HealthAnswer{state}))});
}

void Api::prometheus(const Shared& exchange, const Parameters&) {
  const EngineCounts counts = engine_.counts();
  std::string text = requests_.prometheus();
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    text += fmt::format("# HELP calque_{0} {2}\n# TYPE calque_{0} {1}\ncalque_{0} {3}\n", name, type, help,
                        value);
  };
  add("queue_depth", "gauge", "Lines that wait or are being translated.",
      static_cast<double>(counts.waiting_lines));
  add("tasks", "gauge", "Requests being translated.", static_cast<double>(counts.tasks));
  add("sentences_total", "counter", "Sentences translated.", static_cast<double>(counts.sentences));
  add("source_tokens_total", "counter", "Tokens read.", static_cast<double>(counts.source_tokens));
  add("target_tokens_total", "counter", "Tokens written.", static_cast<double>(counts.target_tokens));
  add("search_seconds_total", "counter", "Time spent searching.", counts.busy_seconds);
  add("resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes());
  exchange->respond({200, text, "text/plain; version=0.0.4"});
}

void Api::list_models(const Shared& exchange, const Parameters&) {
  ModelsAnswer answer{models_.default_name(), models_.precisions(), {}};
  for (const ServedModel& one : models_.list_with_scores()) {
    answer.models.push_back(model_answer(one, engine_.sentences_per_second(one.translator)));
    answer.data.push_back({one.name});
  }
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::show_model(const Shared& exchange, const Parameters& parameters) {
  for (const ServedModel& one : models_.list_with_scores()) {
    if (one.name == parameters.at("name")) {
      exchange->respond({200, json_text(json_of(OpenaiModel{one.name}))});
      return;
    }
  }
  throw ApiError(404, "no such model");
}

void Api::add_model(const Shared& exchange, const Parameters&) {
  JsonReader body(exchange->request().body);
  const std::string name = body.required_text("model");
  body.finish();
  if (options_.token.empty())
    throw ApiError(403, "models can be added only where the server has a token (--token)");
  models_.add(name);
  exchange->respond({202, json_text(json_of(StateAnswer{ModelState::loading}))});
}

void Api::remove_model(const Shared& exchange, const Parameters& parameters) {
  if (options_.token.empty())
    throw ApiError(403, "models can be removed only where the server has a token (--token)");
  if (!models_.remove(parameters.at("name"))) throw ApiError(404, "no such model");
  exchange->respond({200, json_text(json_of(RemovedAnswer{parameters.at("name")}))});
}

}  // namespace calque
