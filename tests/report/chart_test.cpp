#include "calque/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/report/page.h"

namespace calque {

using testing::HasSubstr;

TEST(Chart, TicksAreRoundAndCoverTheRange) {
  EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{0.13, 7.9}, {-3, 5}, {1e-5, 1e-3}, {5, 5}, {1000, 99999}}) {
    const auto ticks = axis_ticks(low, high, 5);
    EXPECT_LE(ticks.front(), low);
    EXPECT_GE(ticks.back(), high);
    EXPECT_LE(ticks.size(), 13u);
  }
}

TEST(Chart, DrawsOnlySeriesWithPoints) {
  const std::string svg = line_chart(
      {"loss", "step", {{"training", {{0, 3}, {10, 1}}}, {"validation", {}}, {"a <b>", {{5, 2}}}}});
  EXPECT_THAT(svg, HasSubstr("<path class=\"line series-0\" d=\"M64.0,"));
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt;"));
  EXPECT_THAT(line_chart({"speed", "step", {{"speed", {{0, 14594.2}}}}}), HasSubstr("<b>14,594</b>"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("validation")));
  EXPECT_THAT(line_chart({"loss", "step", {}}), HasSubstr("No data."));
}

TEST(Chart, MutedSeriesLieBehindTheOthersAndHaveNoLegend) {
  const std::string svg =
      line_chart({"loss", "step", {{"first", {{0, 3}}}, {"other", {{0, 2}}, true}, {"second", {{0, 1}}}}});
  EXPECT_LT(svg.find("line muted"), svg.find("line series-0"));
  EXPECT_THAT(svg, HasSubstr("line series-1"));
  EXPECT_THAT(svg, HasSubstr("<i class=\"series-1\"></i>second"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("</i>other")));
}

TEST(Page, IsSelfContainedAndEscapesText) {
  Page page("Run <x>");
  page.facts({{"a&b", "1 < 2"}});
  page.code("\"quoted\"");
  const std::string html = page.html();
  EXPECT_THAT(html, HasSubstr("<title>Run &lt;x&gt;</title>"));
  EXPECT_THAT(html, HasSubstr("<dt>a&amp;b</dt><dd>1 &lt; 2</dd>"));
  EXPECT_THAT(html, HasSubstr("&quot;quoted&quot;"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, testing::Not(HasSubstr("http")));
}

}  // namespace calque
