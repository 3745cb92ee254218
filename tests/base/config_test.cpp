#include "calque/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace calque {
namespace {

enum class Colour { red, green };

}  // namespace
template <>
struct EnumNames<Colour> {
  static constexpr std::string_view names[] = {"red", "green"};
};
namespace {

struct Part {
  std::filesystem::path file;
  double weight = 1;
};
Fields fields(Part& p) {
  return {field("file", p.file, "where it is"), field("weight", p.weight, above(0.0), "how much it counts")};
}

struct Inner {
  int64_t steps = 10;
  double rate = 0.001;
  Minutes limit;
};
Fields fields(Inner& c) {
  return {field("steps", c.steps, at_least(1), "how many"),
          field("rate", c.rate, between(0.0, 1.0), "how fast"), field("limit", c.limit, "how long")};
}

struct Example {
  std::string name = "none";
  bool flag = false;
  Colour colour = Colour::red;
  std::filesystem::path path;
  std::vector<std::string> words;
  std::vector<Part> parts;
  Inner inner;
};
Fields fields(Example& c) {
  return {field("name", c.name, "what it is called"),
          field("flag", c.flag, "yes or no"),
          field("colour", c.colour, "which colour"),
          field("path", c.path, "where"),
          field("words", c.words, "some words"),
          items("parts", c.parts, "file", "files with weights"),
          section("inner", fields(c.inner), "things inside")};
}

Example read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  Example example;
  read_config_text(fields(example), yaml, "test.yaml", "/folder", overrides);
  return example;
}

std::string message(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    read(yaml, overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(Config, ReadsEveryKindOfValue) {
  const Example e = read(
      "name: demo\nflag: true\ncolour: green\npath: ../a.txt\nwords: [one, two]\n"
      "inner: {steps: 4k, rate: 5e-1, limit: 3h}\n");
  EXPECT_EQ(e.name, "demo");
  EXPECT_TRUE(e.flag);
  EXPECT_EQ(e.colour, Colour::green);
  EXPECT_EQ(e.path, "/a.txt");
  EXPECT_THAT(e.words, testing::ElementsAre("one", "two"));
  EXPECT_EQ(e.inner.steps, 4000);
  EXPECT_EQ(e.inner.rate, 0.5);
  EXPECT_EQ(e.inner.limit.value, 180);
}

TEST(Config, AListMayBeASingleValue) {
  EXPECT_THAT(read("words: one").words, testing::ElementsAre("one"));
  const Example one = read("parts: a.tsv");
  ASSERT_EQ(one.parts.size(), 1u);
  EXPECT_EQ(one.parts[0].file, "/folder/a.tsv");
  const Example two = read("parts: [a.tsv, {file: b.tsv, weight: 2}]");
  ASSERT_EQ(two.parts.size(), 2u);
  EXPECT_EQ(two.parts[1].weight, 2);
}

TEST(Config, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(message("name: a\ninner:\n  setps: 3\n"),
            "test.yaml:3: inner.setps: no such key; did you mean inner.steps?");
  EXPECT_EQ(message("steps: 3\n"), "test.yaml:1: steps: no such key; did you mean inner.steps?");
  EXPECT_EQ(message("inner:\n  steps: many\n"),
            "test.yaml:2: inner.steps: \"many\" is not an integer (examples: 4096, 4k, 1.5M)");
  EXPECT_EQ(message("inner: {steps: 0}"), "test.yaml:1: inner.steps: 0 is too small: it must be at least 1");
  EXPECT_EQ(message("inner: {rate: 1.5}"), "test.yaml:1: inner.rate: 1.5 is too large: it must be at most 1");
  EXPECT_EQ(message("\ncolour: gren"),
            "test.yaml:2: colour: \"gren\" is not one of: red, green; did you mean green?");
  EXPECT_EQ(message("flag: maybe"), "test.yaml:1: flag: \"maybe\" is neither true nor false");
  EXPECT_EQ(message("name: [a]"), "test.yaml:1: name: expected a string, found a list");
  EXPECT_EQ(message("inner: 3"), "test.yaml:1: inner: expected a mapping (key: value)");
  EXPECT_EQ(message("name: a\nname: b"), "test.yaml:2: name: duplicate key");
  EXPECT_EQ(
      message("parts: {fiel: a}"),
      "test.yaml:1: parts: fiel: no such key; did you mean file?; the known keys are file, weight (line 1)");
  EXPECT_THAT(message("name: [a"), testing::HasSubstr("test.yaml:1: not valid YAML"));
  EXPECT_THAT(message("just text"), testing::HasSubstr("expected a mapping (key: value)"));
  EXPECT_THAT(message("name: \xff"), testing::HasSubstr("not valid UTF-8"));
}

TEST(Config, OverridesTakePrecedenceAndAreChecked) {
  EXPECT_EQ(read("inner: {steps: 5}", {"inner.steps=7"}).inner.steps, 7);
  EXPECT_EQ(read("", {"inner.rate=0.25", "colour=green"}).colour, Colour::green);
  EXPECT_EQ(message("", {"inner.steps=-1"}),
            "command line: inner.steps: -1 is too small: it must be at least 1");
  EXPECT_EQ(message("", {"inner.stepz=1"}),
            "command line: inner.stepz: no such key; did you mean inner.steps?");
  EXPECT_EQ(message("", {"inner=1"}),
            "command line: inner is a section; set one of its keys: steps, rate, limit");
  EXPECT_EQ(message("", {"name.x=1"}), "command line: name.x: name is not a section");
  EXPECT_EQ(message("inner: 5", {"inner.steps=1"}), "test.yaml:1: inner: expected a mapping (key: value)");
  EXPECT_THAT(message("", {"steps"}), testing::HasSubstr("expected section.key=value"));
}

TEST(Config, PathsInOverridesAreRelativeToTheCurrentFolder) {
  EXPECT_EQ(read("path: a", {"path=b"}).path, "b");
}

TEST(Config, ShownConfigReadsBackToTheSameValues) {
  Example e = read(
      "name: 'with: colon'\nflag: true\nwords: [a, 'b, c']\npath: x/y\nparts: [a.tsv, {file: b.tsv, weight: "
      "0.5}]\n"
      "inner: {rate: 0.3}\n");
  const std::string shown = show_config(fields(e), "/folder");
  Example back = read(shown);
  EXPECT_EQ(show_config(fields(back), "/folder"), shown);
  EXPECT_THAT(shown, testing::HasSubstr("path: x/y"));
  EXPECT_THAT(shown, testing::HasSubstr("# how fast"));
  EXPECT_EQ(back.parts.size(), 2u);
  EXPECT_EQ(back.parts[1].weight, 0.5);
}

TEST(Config, SchemaTableAndKeysListAllFields) {
  Example e;
  const auto schema = config_schema(fields(e), "example");
  EXPECT_EQ(schema["properties"]["inner"]["properties"]["rate"]["maximum"], 1.0);
  EXPECT_EQ(schema["properties"]["inner"]["properties"]["steps"]["default"], 10);
  EXPECT_EQ(schema["properties"]["colour"]["enum"], nlohmann::json({"red", "green"}));
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_THAT(config_table(fields(e)),
              testing::HasSubstr("| `inner.steps` | integer, at least 1 | `10` | how many |"));
  EXPECT_THAT(config_keys(fields(e)), testing::ElementsAre("name", "flag", "colour", "path", "words", "parts",
                                                           "inner.steps", "inner.rate", "inner.limit"));
}

TEST(Config, AnOverrideOfAnAliasedValueChangesThatPlaceAlone) {
  struct Two {
    int64_t a = 0, b = 0;
    std::string text;
  } two;
  const auto fields = [&] {
    return Fields{section("x", {field("n", two.a, at_least(0), "")}, ""),
                  section("y", {field("n", two.b, at_least(0), "")}, ""), field("text", two.text, "")};
  };
  read_config_text(fields(), "x: &both {n: 1}\ny: *both\n", "a.yaml", {}, {"x.n=7"});
  EXPECT_EQ(two.a, 7);
  EXPECT_EQ(two.b, 1);
  read_config_text(fields(), "", "a.yaml", {}, {"text=French: {source} English: {target}"});
  EXPECT_EQ(two.text, "French: {source} English: {target}");
}

}  // namespace calque
