#include "../../src/serve/json_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/serve/served_models.h"
#include "schema_check.h"

namespace calque {

struct ListedPart {
  std::string name;
};
template <class Visitor>
void members(const ListedPart& one, Visitor& visit) {
  visit("name", one.name);
}

struct ListedResult {
  int64_t count = 0;
  double share = 0;
  bool is_done = false;
  ModelState state = ModelState::loading;
  std::vector<ListedPart> parts = {};
  std::optional<std::string> note = {};
  Nullable<double> score = {};
  std::variant<std::string, std::vector<std::string>> texts = {};
  AnyMembers more = {};
};
template <class Visitor>
void members(const ListedResult& one, Visitor& visit) {
  visit("count", one.count, "how many");
  visit("share", one.share);
  visit("done", one.is_done);
  visit("state", one.state);
  visit("parts", one.parts);
  visit("note", one.note);
  visit("score", one.score);
  visit("texts", one.texts);
  visit("more", one.more);
}

namespace {

using nlohmann::json;
using testing::HasSubstr;

ListedResult some_result() {
  ListedResult result;
  result.count = 2;
  result.share = 0.5;
  result.parts = {{"a"}, {"b"}};
  result.texts = std::vector<std::string>{"x"};
  result.more.object["y"] = 1;
  return result;
}

std::string difference_of(const std::string& name, const json& value) {
  json changed = json_of(some_result());
  changed[name] = value;
  return SchemaCheck().difference(changed, schema_of<ListedResult>());
}

}  // namespace

TEST(JsonMembers, AResultIsWrittenAsItIsListed) {
  EXPECT_EQ(json_of(some_result()),
            json::parse(R"({"count": 2, "share": 0.5, "done": false, "state": "loading",
            "parts": [{"name": "a"}, {"name": "b"}], "score": null, "texts": ["x"], "more": {"y": 1}})"));
  ListedResult other = some_result();
  other.note = "n";
  other.score = {1.5};
  other.texts = "x";
  const json written = json_of(other);
  EXPECT_EQ(written["note"], "n");
  EXPECT_EQ(written["score"], 1.5);
  EXPECT_EQ(written["texts"], "x");
}

TEST(JsonMembers, TheSchemaComesFromTheSameList) {
  EXPECT_EQ(schema_of<ListedPart>(),
            json::parse(R"({"type": "object", "properties": {"name": {"type": "string"}},
            "required": ["name"], "additionalProperties": false})"));
  const json properties = schema_of<ListedResult>()["properties"];
  EXPECT_EQ(properties["count"], json::parse(R"({"type": "integer", "description": "how many"})"));
  EXPECT_EQ(properties["share"]["type"], "number");
  EXPECT_EQ(properties["state"],
            json::parse(R"({"type": "string", "enum": ["loading", "ready", "failed"]})"));
  EXPECT_EQ(properties["score"], json::parse(R"({"type": ["number", "null"]})"));
  EXPECT_EQ(properties["texts"], json::parse(R"({"anyOf": [{"type": "string"},
            {"type": "array", "items": {"type": "string"}}]})"));
  EXPECT_EQ(schema_of<ListedResult>()["required"],
            json::parse(R"(["count", "share", "done", "state", "parts", "score", "texts", "more"])"));
}

TEST(JsonMembers, TheCheckOfTheTestsFindsWhatDiffers) {
  EXPECT_EQ(difference_of("count", 3), "");
  EXPECT_EQ(difference_of("score", 3), "");
  EXPECT_EQ(difference_of("texts", "a"), "");
  EXPECT_EQ(difference_of("note", "n"), "");
  EXPECT_THAT(difference_of("count", 1.5), HasSubstr("$.count: expected \"integer\""));
  EXPECT_THAT(difference_of("score", "3"), HasSubstr("$.score"));
  EXPECT_THAT(difference_of("state", "lost"), HasSubstr("$.state"));
  EXPECT_THAT(difference_of("texts", json::array({1})), HasSubstr("$.texts"));
  EXPECT_THAT(difference_of("note", nullptr), HasSubstr("$.note"));
  EXPECT_THAT(difference_of("other", 1), HasSubstr("other = 1 is not in the schema"));
  EXPECT_THAT(difference_of("parts", json::parse(R"([{"name": "a"}, {}])")), "$.parts[1]: name is missing");
  EXPECT_THAT(SchemaCheck().difference(1, json::parse(R"({"minimum": 2})")), HasSubstr("unknown keyword"));
}

}  // namespace calque
