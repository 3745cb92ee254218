// ErrorAnswer: an error as an answer, in the form that clients of each API read.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/base/field.h"

namespace calque {

enum class ErrorForm { native, libretranslate, deepl, openai };
// As the description of the API calls their schemas.
template <>
struct EnumNames<ErrorForm> {
  static constexpr std::string_view names[] = {"Error", "LibreTranslateError", "DeepLError", "OpenAIError"};
};

ErrorForm error_form(const std::string& path);  // of a request or a route
nlohmann::json error_schema(ErrorForm form);
int unknown_caller_status(const std::string& path);  // 401; DeepL's clients expect 403

struct ErrorAnswer {
  int status = 500;
  std::string message = "it failed";
  std::string field = {};   // of the request
  std::string allow = {};   // of status 405: the methods that the address takes
  bool is_lasting = false;  // of status 503: trying again does not help

  std::string body(const std::string& path) const;  // JSON
};

// Logs what is not the client's fault.
ErrorAnswer error_answer(std::exception_ptr error, const std::string& path);

}  // namespace calque
