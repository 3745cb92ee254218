#include "calque/serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "api_fixture.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string filled(std::string route) {
  for (const char* part : {"{name}", "{id}"}) {
    const size_t at = route.find(part);
    if (at != std::string::npos) route.replace(at, std::strlen(part), "none");
  }
  return route;
}

// The request to load a model.
std::string to_load(const fs::path& checkpoint) {
  json body;
  body["model"] = checkpoint.string();
  return body.dump();
}

}  // namespace

TEST_F(ApiTest, EveryRouteAnswersAsItsDescriptionSays) {
  const std::string other = to_load(folder_ / "other"), broken = to_load(folder_ / "broken");
  for (const char* name : {"other", "broken"})
    fs::copy(folder_ / "own", folder_ / name, fs::copy_options::recursive);
  folder_.write("broken/model.safetensors", "?");
  for (const Question& question : std::vector<Question>{
           {"GET", "/"},
           {"GET", "/v1/health"},
           {"GET", "/metrics"},
           {"GET", "/openapi.json"},
           {"POST", "/v1/models", "", other, 202},
           {"POST", "/v1/models", "", other, 409},
           {"POST", "/v1/models", "", broken, 202},
           {"GET", "/v1/models"},
           {"POST", "/v1/attention", "", R"({"source": "Oui.", "target": "Yes.", "layer": 0})"},
           {"POST", "/v1/alternatives", "", R"({"source": "Oui.", "count": 3})"},
           {"POST", "/v1/evaluate", "", R"({"source": ["Oui.", ""], "reference": ["Yes.", ""]})"},
           {"GET", "/v1/runs"},
           {"GET", "/v1/runs/{name}", "/v1/runs/one?after=2"},
           {"GET", "/v1/runs/{name}/report", "/v1/runs/one/report"},
           {"GET", "/v1/comparisons/{name}", "/v1/comparisons/two"},
           {"GET", "/v1/experiments"},
           {"POST", "/v1/experiments/{name}", "/v1/experiments/worked-example", "{}"},
           {"GET", "/languages"},
           {"POST", "/detect", "", R"({"q": "Où ?"})"},
           {"GET", "/frontend/settings"},
           {"GET", "/v2/languages"},
           {"GET", "/v2/languages", "/v2/languages?type=target"},
           {"GET", "/v2/glossary-language-pairs"},
           {"GET", "/v2/usage"},
       })
    checked(question);
  for (const char* body :
       {R"({"text": []})", R"({"text": ["Oui.", "Le chat.\nLa gare.", ""], "nbest": 3, "attention": true})",
        R"({"text": "Oui.", "words": true, "scores": true, "glossary": {"oui": "yes"}})",
        R"({"text": "<p>Le <b>chat</b>.</p><hr>", "format": "html"})", R"({"text": "Oui.", "stream": true})"})
    checked({"POST", "/v1/translate", "", body});
  for (const char* body : {R"({"q": "Oui.", "alternatives": 2})",
                           R"({"q": ["Oui.", "Non."], "alternatives": 2})", R"({"q": []})"})
    checked({"POST", "/translate", "", body});
  for (const char* stream : {"true", "false"})
    checked(
        {"POST", "/v1/chat/completions", "",
         std::string(R"({"messages": [{"role": "user", "content": "Oui."}], "stream": )") + stream + "}"});
  models_.wait_until_loaded();
  EXPECT_EQ(checked({"GET", "/v1/models"})["models"][2]["state"], "failed");
  checked({"POST", "/v1/translate", "", R"({"text": "Oui.", "model": "broken"})", 503});
  checked({"GET", "/v1/models/{name}", "/v1/models/other"});
  checked({"DELETE", "/v1/models/{name}", "/v1/models/other"});
  checked({"POST", "/v2/translate", "", R"({"text": ["Oui.", "Non."], "target_lang": "EN-GB"})"});
  const json glossary =
      checked({"POST", "/v2/glossaries", "", R"({"name": "n", "entries": "oui\tyes"})", 201});
  const std::string id = "/v2/glossaries/" + glossary.value("glossary_id", "");
  checked({"GET", "/v2/glossaries"});
  checked({"GET", "/v2/glossaries/{id}", id});
  checked({"GET", "/v2/glossaries/{id}/entries", id + "/entries"});
  checked({"DELETE", "/v2/glossaries/{id}", id, "", 204});
  const std::string file =
      "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nOui.\r\n--x--\r\n";
  const json sent = checked(
      {"POST", "/translate_file", "", file, 200, {{"content-type", "multipart/form-data; boundary=x"}}});
  const std::string url = sent.value("translatedFileUrl", "");
  checked({"GET", "/download_file/{id}/{name}", url.substr(std::string("http://localhost").size())});
  for (const auto& [path, methods] : document_.at("paths").items()) {
    for (const auto& [method, operation] : methods.items())
      EXPECT_TRUE(answered_.contains(method + " " + path)) << method << " " << path << " is not tested";
  }
}

TEST_F(ApiTest, ErrorsAreAsTheDescriptionSays) {
  for (const auto& [route, methods] : document_.at("paths").items()) {
    for (const auto& [name, operation] : methods.items()) {
      const std::string method = name == "get" ? "GET" : name == "post" ? "POST" : "DELETE";
      Question question{method, route, filled(route)};
      const bool is_deepl = route.starts_with("/v2/");
      EXPECT_FALSE(is_deepl && operation.at("responses").contains("401")) << route;
      if (is_deepl || operation.at("responses").contains("401")) {
        question.status = is_deepl ? 403 : 401;
        question.headers = {{"authorization", "Bearer wrong"}};
        checked(question);
      }
      question.status = 403;
      question.headers = {{"host", "evil.example"}};
      checked(question);
      question.headers.clear();
      if (operation.contains("requestBody")) {
        question.status = 400;
        question.body = "{";
        checked(question);
      }
      if (route.find('{') != std::string::npos) {
        question.status = 404;
        question.body = "{}";
        checked(question);
      }
    }
  }
}

TEST_F(ApiTest, TheDescriptionHasFormsQueriesAndBothWaysToSendTheToken) {
  const auto operation = [&](const char* route, const char* method) {
    return document_.at("paths").at(route).at(method);
  };
  const auto body = [&](const char* route) {
    return operation(route, "post").at("requestBody").at("content");
  };
  for (const char* route : {"/translate", "/v2/translate", "/v2/glossaries"})
    EXPECT_TRUE(body(route).contains("application/x-www-form-urlencoded")) << route;
  EXPECT_FALSE(body("/v1/translate").contains("application/x-www-form-urlencoded"));
  EXPECT_TRUE(body("/translate_file").contains("multipart/form-data"));
  EXPECT_EQ(operation("/v1/runs/{name}", "get").at("parameters").at(0).at("name"), "after");
  EXPECT_EQ(operation("/v2/translate", "post").at("security").size(), 2U);
}

TEST_F(ApiTest, ErrorsHaveTheFormThatEachClientReads) {
  const auto error = [&](const std::string& route, const char* body) {
    return checked({"POST", route, "", body, 400});
  };
  EXPECT_EQ(error("/v1/translate", R"({"text": 5})"),
            json::parse(R"({"error": {"message": "text: expected a string or an array of strings",
                                      "code": 400, "field": "text"}})"));
  EXPECT_EQ(error("/translate", "{}"), json::parse(R"({"error": "q is missing"})"));
  EXPECT_EQ(error("/v2/translate", "{}"), json::parse(R"({"message": "text is missing"})"));
  EXPECT_EQ(error("/v1/chat/completions", "{}"),
            json::parse(R"({"error": {"message": "messages is missing", "type": "invalid_request_error",
                                      "param": "messages", "code": null}})"));
}

TEST_F(ApiTest, NbestOfSeveralLinesJoinsTheCandidatesOfEachLine) {
  const json whole = translations({{"text", "Le chat dort.\nOù est la gare ?"}, {"nbest", 3}}).at(0);
  const json first = translations({{"text", "Le chat dort."}, {"nbest", 3}}).at(0).at("nbest"),
             second = translations({{"text", "Où est la gare ?"}, {"nbest", 3}}).at(0).at("nbest");
  ASSERT_EQ(whole.at("nbest").size(), std::max(first.size(), second.size()));
  ASSERT_GT(whole.at("nbest").size(), 1U);
  EXPECT_EQ(whole.at("text"), whole.at("nbest").at(0).at("text"));
  const auto text_of = [](const json& one) { return one.at("text").get<std::string>(); };
  for (size_t rank = 0; rank < whole.at("nbest").size(); ++rank) {
    const json& joined = whole.at("nbest").at(rank);
    const json& a = first.at(std::min(rank, first.size() - 1));
    const json& b = second.at(std::min(rank, second.size() - 1));
    EXPECT_EQ(text_of(joined), text_of(a) + "\n" + text_of(b));
    for (const char* sum : {"score", "log_probability"})
      EXPECT_DOUBLE_EQ(joined.at(sum).get<double>(), a.at(sum).get<double>() + b.at(sum).get<double>())
          << sum;
  }
}

TEST_F(ApiTest, TheCandidatesOfAnNbestListHaveTheTextsOfTheirSegments) {
  const json one = translations({{"text", "Le chat dort. Il est tard.\nOui."},
                                 {"split_sentences", true},
                                 {"nbest", 3},
                                 {"words", true}})
                       .at(0);
  ASSERT_EQ(one.at("segments").size(), 3U);
  for (const json& candidate : one.at("nbest")) {
    const auto parts = candidate.at("parts").get<std::vector<std::string>>();
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_EQ(candidate.at("text"), parts[0] + " " + parts[1] + "\n" + parts[2]);
  }
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(one.at("nbest").at(0).at("parts").at(i), one.at("segments").at(i).at("text"));
}

TEST_F(ApiTest, OnlyAModelThatMayStillLoadIsWorthAskingForAgain) {
  const auto retry = [&](const json& body) {
    const HttpResponse answer = ask({"POST", "/v1/translate", "", body.dump()});
    EXPECT_EQ(answer.status, 503);
    return std::any_of(answer.headers.begin(), answer.headers.end(),
                       [](const auto& one) { return one.first == "Retry-After"; });
  };
  EXPECT_TRUE(retry({{"text", "Oui."}, {"precision", "bfloat16"}}));
  fs::copy(folder_ / "own", folder_ / "broken", fs::copy_options::recursive);
  folder_.write("broken/model.safetensors", "?");
  models_.add((folder_ / "broken").string());
  models_.wait_until_loaded();
  EXPECT_FALSE(retry({{"text", "Oui."}, {"model", "broken"}}));
}

TEST_F(ApiTest, AModelThatReplacesOneOfItsNameIsServedItself) {
  fs::create_directories(folder_ / "a");
  fs::create_directories(folder_ / "b");
  fs::copy(folder_ / "own", folder_ / "a/model", fs::copy_options::recursive);
  fs::copy(folder_ / "own", folder_ / "b/model", fs::copy_options::recursive);
  folder_.write("b/model/model.safetensors", "?");
  models_.add((folder_ / "a/model").string());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it is being loaded
  models_.remove("model");
  models_.add((folder_ / "b/model").string());
  models_.wait_until_loaded();
  EXPECT_EQ(models_.find("model")->state, ModelState::failed);
}

TEST_F(ApiTest, NbestKeepsTheTagsOfAllLines) {
  const json one =
      translations({{"text", "<p>Le <b>chat</b> dort.</p><p>Oui.</p>"}, {"format", "html"}, {"nbest", 2}})
          .at(0);
  ASSERT_EQ(one.at("nbest").size(), 2U);
  for (const json& candidate : one.at("nbest")) {
    const std::string text = candidate.at("text");
    EXPECT_TRUE(text.starts_with("<p>")) << text;
    EXPECT_THAT(text, testing::AllOf(HasSubstr("<b>"), HasSubstr("</b>"), HasSubstr("</p><p>")));
  }
}

TEST_F(ApiTest, WhatLooksIntoATranslationTakesAPrecision) {
  const std::vector<std::pair<std::string, std::string>> questions = {
      {"/v1/attention", R"({"source": "Oui.", "target": "Yes."})"},
      {"/v1/alternatives", R"({"source": "Oui."})"},
      {"/v1/evaluate", R"({"source": "Oui.", "reference": "Yes."})"}};
  for (const auto& [route, body] : questions) {
    json asked = json::parse(body);
    for (const char* unknown : {"int8", "int4"}) {
      asked["precision"] = unknown;
      EXPECT_EQ(checked({"POST", route, "", asked.dump(), 400})["error"]["field"], "precision") << route;
    }
    for (const char* served : {"float32", "bfloat16"}) {
      asked["precision"] = served;
      if (ask({"POST", route, "", asked.dump()}).status == 503) models_.wait_until_loaded();
      checked({"POST", route, "", asked.dump()});
    }
  }
}

// As DeepL's Python client asks.
TEST_F(ApiTest, TheTypeOfDeeplsLanguagesMayStandInABody) {
  const json found = checked({"GET",
                              "/v2/languages",
                              "",
                              "type=target",
                              200,
                              {{"content-type", "application/x-www-form-urlencoded"}}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["language"], "EN-GB");
  EXPECT_EQ(checked({"GET", "/v2/languages"})[0]["language"], "FR");
}

TEST_F(ApiTest, LibreTranslateSaysWhichLanguageItDetected) {
  const json one = checked({"POST", "/translate", "", R"({"q": "Où est la gare ?", "source": "auto"})"});
  EXPECT_EQ(one["detectedLanguage"]["language"], "fr");
  const json many = checked({"POST", "/translate", "", R"({"q": ["Où ?", "Where is the cat?"]})"});
  EXPECT_EQ(many["detectedLanguage"][1]["language"], "en");
  EXPECT_FALSE(
      checked({"POST", "/translate", "", R"({"q": "Oui.", "source": "fr"})"}).contains("detectedLanguage"));
}

TEST(Instructions, AreNotTranslated) {
  for (const char* text :
       {"Translate into English: Le chat dort.", "Please translate this sentence into English: Le chat dort.",
        "You are a translator. Translate into English: Le chat dort.",
        "Translate to English\n\nLe chat dort.",
        "Could you please translate this to English?\nFrench: Le chat dort.\nEnglish:",
        "Traduis en anglais : Le chat dort."})
    EXPECT_EQ(without_instruction(text), "Le chat dort.") << text;
  for (const char* text : {"Le chat dort.", "Il dit : je dors.", "You are a translator.",
                           "Translate into English:", "Traduire un texte en anglais\nCliquez ici.",
                           "Le guide sait traduire en anglais : bonjour."})
    EXPECT_EQ(without_instruction(text), text);
}

}  // namespace calque
