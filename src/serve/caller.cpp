// Who may call a route.
#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <optional>

#include "api_json.h"
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

// The `api_key` of a JSON object. Nothing else is kept: the caller is not known yet, and 16 MB of brackets
// would be a gigabyte.
std::optional<std::string> api_key_in(const std::string& body) {
  using Event = json::parse_event_t;
  constexpr int max_depth = 100;
  const auto keep = [&](int depth, Event event, json& parsed) {
    if (depth > max_depth) throw ApiError(400, "the request's body is nested too deep");
    if (event == Event::array_start || event == Event::object_start)
      return depth == 0 && event == Event::object_start;
    return event != Event::key || (depth == 1 && parsed == "api_key");
  };
  const json object = json::parse(body, keep, false);
  if (!object.is_object() || !object.contains("api_key") || !object["api_key"].is_string())
    return std::nullopt;
  return object["api_key"].get<std::string>();
}

}  // namespace

// The token as each kind of client sends it.
std::string given_token(const HttpRequest& request) {
  const std::string& header = request.header("authorization");
  for (const std::string_view scheme : {"bearer ", "deepl-auth-key "}) {  // in any case (RFC 9110)
    if (lower_ascii(header.substr(0, scheme.size())) == scheme) return header.substr(scheme.size());
  }
  if (request.path == "/translate" || request.path == "/detect" || request.path == "/translate_file") {
    if (const auto key = api_key_in(request.body))
      return *key;  // LibreTranslate's clients send it in the body
    const auto form = form_fields(request);
    const auto found = form.find("api_key");
    if (found != form.end()) return found->second;
  }
  return "";
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

}  // namespace calque
