// What a request may cost, and that nothing is done for a client that has left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "api_fixture.h"
#include "served_model.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Seconds of work in the background.
Question long_experiment(const std::string& client = "test") {
  Question question{"POST", "/v1/experiments/{name}", "/v1/experiments/single-head",
                    R"({"parameters": {"samples": 50000, "n": 70}})"};
  question.client = client;
  return question;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The largest that this process has ever been.
double peak_megabytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

}  // namespace

TEST_F(ApiTest, WhatNobodyWaitsForIsNotComputed) {
  std::vector<std::shared_ptr<KeptExchange>> left;
  for (int i = 0; i < 10; ++i) left.push_back(sent(api_, long_experiment()));
  for (const auto& one : left) one->leave();
  checked({"GET", "/v1/runs"});  // by the same threads, after them
  for (const auto& one : left) EXPECT_FALSE(one->is_answered());
}

TEST_F(ApiTest, AStopWaitsForNoExperiment) {
  std::vector<std::shared_ptr<KeptExchange>> cut;
  {
    Api api(engine_, models_, options_of(folder_));
    for (int i = 0; i < 10; ++i) cut.push_back(sent(api, long_experiment()));
  }
  for (const auto& one : cut) EXPECT_EQ(one->wait().status, 503);
}

TEST_F(ApiTest, AnExperimentEndsWithTheTimeOfARequest) {
  ApiOptions options = options_of(folder_);
  options.timeout = std::chrono::seconds(0);
  Api api(engine_, models_, options);
  EXPECT_EQ(sent(api, long_experiment())->wait().status, 504);
}

TEST_F(ApiTest, TheDrawsOfAnExperimentAreLimitedByTheirSize) {
  const std::string path = "/v1/experiments/single-head";
  const json error = checked({"POST", "/v1/experiments/{name}", path,
                              R"({"parameters": {"samples": 50000, "n": 256}})", 400})["error"];
  EXPECT_THAT(error.value("message", ""), HasSubstr("samples × n²"));
}

TEST_F(ApiTest, EvaluationsWaitInABoundedQueue) {
  std::vector<std::shared_ptr<KeptExchange>> busy = {sent(api_, long_experiment("a")),
                                                     sent(api_, long_experiment("b"))};
  std::vector<std::shared_ptr<KeptExchange>> evaluations;
  for (int i = 0; i < 100; ++i)
    evaluations.push_back(
        sent(api_, {"POST", "/v1/evaluate", "", R"({"hypothesis": "Yes.", "reference": "Yes."})"}));
  for (const auto& one : busy) one->leave();
  size_t refused = 0;
  for (const auto& one : evaluations) refused += one->wait().status == 429;
  EXPECT_EQ(refused, 68U);  // 32 of a client may wait
}

TEST_F(ApiTest, NbestMayNotMultiplyATextBeyondTheLargestRequest) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += std::string(60'000, 'a') + "\n";
  const auto status = [&](const char* route, const json& body) {
    return ask({"POST", route, "", body.dump()}).status;
  };
  EXPECT_EQ(status("/v1/translate", {{"text", text}, {"nbest", 32}}), 413);
  EXPECT_EQ(status("/translate", {{"q", {text, text}}, {"alternatives", 20}}), 413);
  EXPECT_EQ(status("/v1/translate", {{"text", text}}), 200);
}

TEST_F(ApiTest, AStreamSendsALongTextSoFarNowAndThen) {
  const std::string lines(900, '\n');  // done in no time
  const HttpResponse answer =
      ask({"POST", "/v1/translate", "", json{{"text", "Oui." + lines}, {"stream", true}}.dump()});
  EXPECT_THAT(answer.body, HasSubstr("event: translation"));
  EXPECT_LT(count_of(answer.body, "event: partial"), 100U);
}

TEST_F(ApiTest, ABodyIsNotKeptForAnUnknownCaller) {
  const double before = peak_megabytes();
  for (const std::string& body : {std::string(16 << 20, '['), "[0" + std::string(8 << 20, ',') + "]"}) {
    Question question{"POST", "/translate", "", body};
    question.headers = {{"authorization", ""}};
    const int status = ask(question).status;
    EXPECT_TRUE(status == 400 || status == 401) << status;
  }
  EXPECT_LT(peak_megabytes() - before, 200);
}

TEST_F(ApiTest, LibreTranslatesClientsSendTheTokenInTheBody) {
  const auto status = [&](const json& body) {
    Question question{"POST", "/translate", "", body.dump()};
    question.headers = {{"authorization", ""}};
    return ask(question).status;
  };
  EXPECT_EQ(status({{"q", "Oui."}, {"api_key", "token"}, {"source", "fr"}}), 200);
  EXPECT_EQ(status({{"q", "Oui."}, {"api_key", "wrong"}}), 401);
  EXPECT_EQ(status({{"q", {{"api_key", "token"}}}}), 401);
  EXPECT_EQ(status({{"q", "Oui."}, {"api_key", {"token"}}}), 401);
  EXPECT_EQ(status(json::array({"api_key", "token"})), 401);
}

TEST_F(ApiTest, AnAnswersDetailsAreCheckedAndLimited) {
  const auto translator = tiny_translator();
  const Translation translation = translator->translate("Le chat dort.");
  const TextOptions options{false, false, true};
  std::vector<SegmentAnswer> segments;
  size_t weights_left = 1;
  for (int line = 0; line < 2; ++line)
    add_segments(segments, line, *translator, translation, options, weights_left, [] {});
  EXPECT_TRUE(segments.at(0).attention);
  EXPECT_FALSE(segments.at(1).attention);
  const Check left = [] { throw ClientLeft(); };
  EXPECT_THROW(add_segments(segments, 0, *translator, translation, options, weights_left, left), ClientLeft);
}

TEST_F(ApiTest, ANameOrATermThatIsTooLongIsRefused) {
  const std::string text(2000, 'a');
  EXPECT_EQ(ask({"POST", "/v2/glossaries", "", json{{"name", text}, {"entries", "a\tb"}}.dump()}).status,
            413);
  for (const json& glossary : {json{{text, "b"}}, json{{"a", text}}})
    EXPECT_EQ(ask({"POST", "/v1/translate", "", json{{"text", "a"}, {"glossary", glossary}}.dump()}).status,
              413);
}

}  // namespace calque
