#include "calque/serve/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/decode/decode_config.h"
#include "calque/serve/api.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

JsonReader read(const std::string& body) { return JsonReader(body); }

// The message of the error, and the field that it names.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return std::string(error.what()) + " | " + error.field;
  }
  return "no error";
}

}  // namespace

TEST(JsonReader, MembersHaveTheirTypesOrAreNamed) {
  JsonReader body = read(R"({"a": "x", "b": ["y", "z"], "c": true, "d": 7, "e": null})");
  EXPECT_EQ(body.text("a"), "x");
  EXPECT_THAT(body.texts("a"), ElementsAre("x"));
  EXPECT_THAT(body.texts("b"), ElementsAre("y", "z"));
  EXPECT_TRUE(body.flag("c", false));
  EXPECT_EQ(body.integer("d", 7, 7), 7);
  EXPECT_EQ(body.text("e", "otherwise"), "otherwise");
  EXPECT_EQ(body.integer("e", 0, 1), std::nullopt);
  EXPECT_THAT(body.texts("e"), IsEmpty());
  EXPECT_TRUE(body.flag("e", true));
  body.finish();
  EXPECT_THAT(error_of([&] { body.text("b"); }), HasSubstr("b: expected a string | b"));
  EXPECT_THAT(error_of([&] { body.texts("d"); }), HasSubstr("| d"));
  EXPECT_THAT(error_of([&] { body.flag("a", false); }), HasSubstr("| a"));
  EXPECT_THAT(error_of([&] { body.integer("a", 0, 1); }), HasSubstr("| a"));
  EXPECT_THAT(error_of([&] { body.integer("d", 0, 6); }), HasSubstr("| d"));
  EXPECT_THAT(error_of([&] { body.integer("d", 8, 9); }), HasSubstr("| d"));
  EXPECT_THAT(error_of([&] { body.required_text("e"); }), HasSubstr("e is missing | e"));
}

TEST(JsonReader, UnknownMembersAreRefusedWithTheNearestName) {
  JsonReader body = read(R"({"temprature": 1})");
  DecodeConfig decode;
  body.fields(fields(decode));
  EXPECT_THAT(error_of([&] { body.finish(); }), HasSubstr("did you mean temperature?"));
  JsonReader other = read(R"({"anything": 1})");
  other.ignore({"anything"});
  other.finish();
}

TEST(JsonReader, DecodeOptionsFollowTheConfigurationsRules) {
  DecodeConfig decode;
  read(R"({"beam": 3, "length_penalty": 1.5, "sample": true})").fields(fields(decode));
  EXPECT_EQ(decode.beam, 3);
  EXPECT_EQ(decode.length_penalty, 1.5);
  EXPECT_TRUE(decode.sample);
  for (const char* bad : {R"({"beam": 0})", R"({"beam": 1.5})", R"({"beam": "3"})", R"({"sample": 1})"})
    EXPECT_NE(error_of([&] { read(bad).fields(fields(decode)); }), "no error") << bad;
}

TEST(JsonReader, WhatIsNoObjectIsRefused) {
  for (const char* bad : {"", "{", "[]", "3", "{\"a\": \"\xff\"}", "{\"a\":1}}"})
    EXPECT_NE(error_of([&] { read(bad); }), "no error") << bad;
  EXPECT_THAT(error_of([] { JsonReader(std::string(100'000, '[')); }), HasSubstr("nested"));
}

}  // namespace calque
