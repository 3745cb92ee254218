// CompatibleAnswers: what the routes answer that clients of LibreTranslate, DeepL and OpenAI call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "json_members.h"

namespace calque {

struct LibreDetection {
  std::string language;
  double confidence = 0;
};
template <class Visitor>
void members(const LibreDetection& one, Visitor& visit) {
  visit("language", one.language);
  visit("confidence", one.confidence, "from 0 to 100");
}

// One text, or as many as were given.
struct LibreTranslation {
  std::variant<std::string, std::vector<std::string>> text;
  std::optional<std::variant<std::vector<std::string>, std::vector<std::vector<std::string>>>> alternatives =
      {};
  std::optional<std::variant<LibreDetection, std::vector<LibreDetection>>> detected = {};
};
template <class Visitor>
void members(const LibreTranslation& one, Visitor& visit) {
  visit("translatedText", one.text);
  visit("alternatives", one.alternatives, "where the request asks for them");
  visit("detectedLanguage", one.detected, "where the source is auto");
}

struct LibreLanguage {
  std::string code, name;
  std::vector<std::string> targets;
};
template <class Visitor>
void members(const LibreLanguage& one, Visitor& visit) {
  visit("code", one.code);
  visit("name", one.name);
  visit("targets", one.targets);
}

struct LibreChoice {
  std::string code, name;
};
template <class Visitor>
void members(const LibreChoice& one, Visitor& visit) {
  visit("code", one.code);
  visit("name", one.name);
}

struct LibreChoices {
  LibreChoice source = {"fr", "French"}, target = {"en", "English"};
};
template <class Visitor>
void members(const LibreChoices& one, Visitor& visit) {
  visit("source", one.source);
  visit("target", one.target);
}

struct LibreSettings {
  bool needs_token = false;
  int64_t character_limit = -1;  // none
  bool translates_files = true;
  int64_t frontend_timeout = 500;  // ms
  LibreChoices language = {};
  bool takes_suggestions = false;
  std::vector<std::string> file_formats = {".txt", ".html"};
};
template <class Visitor>
void members(const LibreSettings& one, Visitor& visit) {
  visit("apiKeys", one.needs_token);
  visit("charLimit", one.character_limit, "-1: none");
  visit("filesTranslation", one.translates_files);
  visit("frontendTimeout", one.frontend_timeout);
  visit("keyRequired", one.needs_token);
  visit("language", one.language);
  visit("suggestions", one.takes_suggestions);
  visit("supportedFilesFormat", one.file_formats);
}

struct LibreFile {
  std::string url;
};
template <class Visitor>
void members(const LibreFile& one, Visitor& visit) {
  visit("translatedFileUrl", one.url);
}

struct DeeplTranslation {
  std::string text;
  std::string detected_source_language = "FR";
  int64_t billed_characters = 0;
  std::string model_type_used = "quality_optimized";
};
template <class Visitor>
void members(const DeeplTranslation& one, Visitor& visit) {
  visit("text", one.text);
  visit("detected_source_language", one.detected_source_language);
  visit("billed_characters", one.billed_characters);
  visit("model_type_used", one.model_type_used);
}

struct DeeplTranslations {
  std::vector<DeeplTranslation> translations;
};
template <class Visitor>
void members(const DeeplTranslations& one, Visitor& visit) {
  visit("translations", one.translations);
}

struct DeeplLanguage {
  std::string language, name;
  std::optional<bool> supports_formality = {};
};
template <class Visitor>
void members(const DeeplLanguage& one, Visitor& visit) {
  visit("language", one.language);
  visit("name", one.name);
  visit("supports_formality", one.supports_formality, "of a target language");
}

struct DeeplGlossaryPair {
  std::string source_lang = "fr", target_lang = "en";
};
template <class Visitor>
void members(const DeeplGlossaryPair& one, Visitor& visit) {
  visit("source_lang", one.source_lang);
  visit("target_lang", one.target_lang);
}

struct DeeplGlossaryLanguages {
  std::vector<DeeplGlossaryPair> supported_languages = {{}};
};
template <class Visitor>
void members(const DeeplGlossaryLanguages& one, Visitor& visit) {
  visit("supported_languages", one.supported_languages);
}

struct DeeplUsage {
  int64_t character_count = 0, character_limit = 1'000'000'000'000;
};
template <class Visitor>
void members(const DeeplUsage& one, Visitor& visit) {
  visit("character_count", one.character_count);
  visit("character_limit", one.character_limit);
}

struct DeeplGlossary {
  std::string glossary_id, name;
  bool ready = true;
  std::string source_lang = "fr", target_lang = "en";
  std::string creation_time = {};
  int64_t entry_count = 0;
};
template <class Visitor>
void members(const DeeplGlossary& one, Visitor& visit) {
  visit("glossary_id", one.glossary_id);
  visit("name", one.name);
  visit("ready", one.ready);
  visit("source_lang", one.source_lang);
  visit("target_lang", one.target_lang);
  visit("creation_time", one.creation_time);
  visit("entry_count", one.entry_count);
}

struct DeeplGlossaries {
  std::vector<DeeplGlossary> glossaries;
};
template <class Visitor>
void members(const DeeplGlossaries& one, Visitor& visit) {
  visit("glossaries", one.glossaries);
}

// What an answer and the chunks of a stream begin with.
struct ChatHead {
  std::string id;
  int64_t created = 0;
  std::string model;
};
template <class Visitor>
void members(const ChatHead& one, Visitor& visit) {
  visit("id", one.id);
  visit("created", one.created, "seconds since 1970");
  visit("model", one.model);
}

struct ChatMessage {
  std::string content;
  std::string role = "assistant";
};
template <class Visitor>
void members(const ChatMessage& one, Visitor& visit) {
  visit("content", one.content);
  visit("role", one.role);
}

struct ChatChoice {
  ChatMessage message;
  int64_t index = 0;
  std::string finish_reason = "stop";
};
template <class Visitor>
void members(const ChatChoice& one, Visitor& visit) {
  visit("message", one.message);
  visit("index", one.index);
  visit("finish_reason", one.finish_reason);
}

struct ChatUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0;
};
template <class Visitor>
void members(const ChatUsage& one, Visitor& visit) {
  visit("prompt_tokens", one.prompt_tokens);
  visit("completion_tokens", one.completion_tokens);
  visit("total_tokens", one.prompt_tokens + one.completion_tokens);
}

struct ChatAnswer {
  ChatHead head;
  std::vector<ChatChoice> choices;
  ChatUsage usage;
  std::string object = "chat.completion";
};
template <class Visitor>
void members(const ChatAnswer& one, Visitor& visit) {
  members(one.head, visit);
  visit("choices", one.choices);
  visit("usage", one.usage);
  visit("object", one.object);
}

}  // namespace calque
