#include "calque/serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../src/serve/api_json.h"
#include "calque/base/error.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

HttpRequest form(const std::string& type, const std::string& body) {
  HttpRequest request;
  request.headers["content-type"] = type;
  request.body = body;
  return request;
}

}  // namespace

TEST(HttpServer, UrlsAreDecoded) {
  EXPECT_EQ(decode_url("a%20b+c%C3%A9", false), "a b+cé");
  EXPECT_EQ(decode_url("a+b%2b", true), "a b+");
  EXPECT_EQ(decode_url("100%", false), "100%");
  EXPECT_EQ(decode_url("%zz%4", false), "%zz%4");
  EXPECT_THAT(parse_query("a=1&b=%26&c&=d&a=2"), testing::Contains(Pair("b", "&")));
}

TEST(HttpServer, FormsOfBothKindsAreRead) {
  EXPECT_THAT(form_fields(form("application/x-www-form-urlencoded", "q=l%27eau&target=en")),
              UnorderedElementsAre(Pair("q", "l'eau"), Pair("target", "en")));
  const std::string body =
      "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: "
      "text/plain\r\n\r\nun\r\n"
      "deux\r\n--x\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nfr\r\n--x--\r\n";
  EXPECT_THAT(
      form_fields(form("multipart/form-data; boundary=x", body)),
      UnorderedElementsAre(Pair("file", "un\r\ndeux"), Pair("file.filename", "a.txt"), Pair("source", "fr")));
  EXPECT_THAT(form_fields(form("multipart/form-data; boundary=\"x\"", body)).size(), 3);
  for (const char* broken : {"", "--x", "--x\r\n", "--x\r\nname=\"a\"", "--x\r\n\r\n\r\n--x--"})
    EXPECT_TRUE(form_fields(form("multipart/form-data; boundary=x", broken)).empty()) << broken;
  EXPECT_TRUE(form_fields(form("text/plain", body)).empty());
}

TEST(HttpServer, ABodyIsJsonOrAFormAndRepeatedNamesAreLists) {
  const auto repeated = body_of(form("application/x-www-form-urlencoded", "text=a&text=b&target_lang=EN"));
  EXPECT_EQ(repeated["text"], nlohmann::json({"a", "b"}));
  EXPECT_EQ(repeated["target_lang"], "EN");
  EXPECT_EQ(body_of(form("application/json", R"({"text": "a"})"))["text"], "a");
  EXPECT_THROW(body_of(form("application/json", std::string(100'000, '['))), ApiError);
}

TEST(HttpServer, AnAddressThatIsTakenIsAUserError) {
  HttpOptions options;
  options.port = 0;
  const HttpServer first(options, [](const std::shared_ptr<Exchange>&) {});
  EXPECT_GT(first.port(), 0);
  options.port = first.port();
  EXPECT_THROW(HttpServer(options, [](const std::shared_ptr<Exchange>&) {}), UserError);
  options.host = "not an address";
  EXPECT_THROW(HttpServer(options, [](const std::shared_ptr<Exchange>&) {}), UserError);
}

TEST(Language, FrenchAndEnglishAreToldApart) {
  EXPECT_EQ(detect_language("Où est la gare ?").first, "fr");
  EXPECT_EQ(detect_language("Where is the station?").first, "en");
  EXPECT_GT(detect_language("Nous sommes dans l'eau.").second, 0.7);
  EXPECT_EQ(detect_language("").second, 0.5);
}

}  // namespace calque
