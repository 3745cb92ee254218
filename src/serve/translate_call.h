// TranslateCall: what a request wants translated, and what has come of it so far.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api_json.h"
#include "calque/serve/api.h"

namespace calque {

struct Api::TranslateCall {
  std::vector<std::string> texts;
  ServedModel model;
  std::shared_ptr<const DecodeConfig> decode;
  std::string prefix;
  TextOptions options;
  std::function<void(size_t text, const std::string& so_far)> partial;  // where it is streamed
  std::function<void(std::exception_ptr)> failed;                       // instead of an error's answer

  // By line, of all texts.
  std::vector<Translation> translations;
  std::map<size_t, std::string> unfinished;
  std::vector<size_t> first_line;  // of each text, and one more

  size_t text_of(size_t line) const;
  std::string text_so_far(size_t text) const;
  nlohmann::json to_json(size_t text) const;
};

}  // namespace calque
