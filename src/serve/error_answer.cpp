#include "error_answer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/serve/api.h"
#include "calque/serve/engine.h"
#include "calque/serve/served_models.h"
#include "json_members.h"

namespace calque {

using nlohmann::json;

struct NativeErrorDetails {
  std::string message;
  int64_t code = 0;
  std::optional<std::string> field = {};
};
template <class Visitor>
void members(const NativeErrorDetails& one, Visitor& visit) {
  visit("message", one.message);
  visit("code", one.code, "the status");
  visit("field", one.field, "of the request, where one is wrong");
}

struct NativeError {
  NativeErrorDetails error;
};
template <class Visitor>
void members(const NativeError& one, Visitor& visit) {
  visit("error", one.error);
}

struct LibreTranslateError {
  std::string error;
};
template <class Visitor>
void members(const LibreTranslateError& one, Visitor& visit) {
  visit("error", one.error);
}

struct DeeplError {
  std::string message;
};
template <class Visitor>
void members(const DeeplError& one, Visitor& visit) {
  visit("message", one.message);
}

struct OpenaiErrorDetails {
  std::string message, type;
  Nullable<std::string> param = {}, code = {};
};
template <class Visitor>
void members(const OpenaiErrorDetails& one, Visitor& visit) {
  visit("message", one.message);
  visit("type", one.type);
  visit("param", one.param, "the field of the request, where one is wrong");
  visit("code", one.code);
}

struct OpenaiError {
  OpenaiErrorDetails error;
};
template <class Visitor>
void members(const OpenaiError& one, Visitor& visit) {
  visit("error", one.error);
}

namespace {

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

json in_form(const ErrorAnswer& answer, ErrorForm form) {
  switch (form) {
    case ErrorForm::libretranslate:
      return json_of(LibreTranslateError{answer.message});
    case ErrorForm::deepl:
      return json_of(DeeplError{answer.message});
    case ErrorForm::openai: {
      const char* type = answer.status >= 500   ? "server_error"
                         : answer.status == 429 ? "rate_limit_error"
                                                : "invalid_request_error";
      return json_of(OpenaiError{{answer.message, type, {unless_empty(answer.field)}}});
    }
    case ErrorForm::native:
      break;
  }
  return json_of(NativeError{{answer.message, answer.status, unless_empty(answer.field)}});
}

// LibTorch's messages go on with a stack trace.
std::string first_part(const std::string& message) {
  return message.substr(0, message.find("\nException raised from"));
}

}  // namespace

ErrorForm error_form(const std::string& path) {
  static constexpr std::array libretranslate = {"/translate", "/translate_file", "/detect", "/languages",
                                                "/frontend/settings"};
  if (path.starts_with("/v2/")) return ErrorForm::deepl;
  if (path == "/v1/chat/completions") return ErrorForm::openai;
  if (path.starts_with("/download_file/") ||
      std::find(libretranslate.begin(), libretranslate.end(), path) != libretranslate.end())
    return ErrorForm::libretranslate;
  return ErrorForm::native;
}

json error_schema(ErrorForm form) {
  switch (form) {
    case ErrorForm::libretranslate:
      return schema_of<LibreTranslateError>();
    case ErrorForm::deepl:
      return schema_of<DeeplError>();
    case ErrorForm::openai:
      return schema_of<OpenaiError>();
    case ErrorForm::native:
      break;
  }
  return schema_of<NativeError>();
}

int unknown_caller_status(const std::string& path) {
  return error_form(path) == ErrorForm::deepl ? 403 : 401;
}

std::string ErrorAnswer::body(const std::string& path) const {
  return in_form(*this, error_form(path)).dump(-1, ' ', false, json::error_handler_t::replace);
}

ErrorAnswer error_answer(std::exception_ptr error, const std::string& path) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& api) {
    return {api.status, api.what(), api.field, api.allow, api.is_lasting};
  } catch (const QueueFull& full) {
    return {429, std::string("the server is busy: ") + full.what()};
  } catch (const TimeOver& over) {
    return {504, over.what()};
  } catch (const NameTaken& taken) {
    return {409, taken.what()};
  } catch (const UserError& user) {
    return {400, user.what()};
  } catch (const std::exception& other) {
    const std::string message = first_part(other.what());
    log::error("{}: {}", path, message);
    return {500, message};
  } catch (...) {
    return {};
  }
}

}  // namespace calque
