#include "calque/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calque/base/units.h"
#include "calque/report/page.h"

namespace calque {
namespace {

constexpr double width = 760, height = 300, left = 64, right = 16, top = 16, bottom = 44;

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

// The format of values in the legend.
std::string value_text(double value) {
  return std::abs(value) >= 1000 ? format_count(std::llround(value)) : fmt::format("{:.4g}", value);
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  if (!(high > low)) high = low + std::max(1e-9, std::abs(low) * 0.1);
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power, step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
  std::vector<double> ticks;
  for (double tick = std::floor(low / step) * step; tick < high + step * 0.999; tick += step) {
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

std::string line_chart(const LineChart& chart) {
  std::vector<Series> shown;
  for (const Series& one : chart.series) {
    if (!one.points.empty()) shown.push_back(one);
  }
  if (shown.empty()) return "<p class=\"empty\">No data.</p>\n";
  double low_x = shown[0].points[0].first, high_x = low_x, low_y = shown[0].points[0].second, high_y = low_y;
  for (const Series& one : shown) {
    for (const auto& [x, y] : one.points) {
      low_x = std::min(low_x, x);
      high_x = std::max(high_x, x);
      low_y = std::min(low_y, y);
      high_y = std::max(high_y, y);
    }
  }
  const auto x_ticks = axis_ticks(low_x, high_x, 6), y_ticks = axis_ticks(low_y, high_y, 5);
  const double x_span = std::max(high_x - low_x, 1e-12), y_low = y_ticks.front(),
               y_span = y_ticks.back() - y_low;
  const auto to_x = [&](double x) { return left + (x - low_x) / x_span * (width - left - right); };
  const auto to_y = [&](double y) {
    return height - bottom - (y - y_low) / y_span * (height - top - bottom);
  };

  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                                escape_html(chart.y_label));
  for (const double tick : y_ticks) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"tick\" x=\"{}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width - right, to_y(tick), to_y(tick), left - 8, to_y(tick) + 4, tick_text(tick));
  }
  for (const double tick : x_ticks) {
    if (tick < low_x || tick > high_x) continue;
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       to_x(tick), height - bottom + 18, tick_text(tick));
  }
  svg += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (left + width - right) / 2, height - 6, escape_html(chart.x_label));
  std::stable_partition(shown.begin(), shown.end(), [](const Series& one) { return one.muted; });
  const auto muted = static_cast<size_t>(
      std::count_if(shown.begin(), shown.end(), [](const Series& one) { return one.muted; }));
  const auto colour = [&](size_t i) {
    return shown[i].muted ? std::string("muted") : fmt::format("series-{}", (i - muted) % 6);
  };
  for (size_t i = 0; i < shown.size(); ++i) {
    std::string path;
    for (const auto& [x, y] : shown[i].points)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", to_x(x), to_y(y));
    svg += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", colour(i), path);
    const auto& [x, y] = shown[i].points.back();
    svg += fmt::format(
        "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{}: "
        "{:g}</title></circle>\n",
        colour(i), to_x(x), to_y(y), escape_html(shown[i].label), y);
  }
  svg += "</svg>\n<p class=\"legend\">";
  for (size_t i = muted; i < shown.size(); ++i) {
    svg += fmt::format("<span><i class=\"{}\"></i>{} <b>{}</b></span> ", colour(i),
                       escape_html(shown[i].label), value_text(shown[i].points.back().second));
  }
  return svg + "</p>\n";
}

std::string bar_chart(const BarChart& chart) {
  if (chart.groups.empty()) return "<p class=\"empty\">No data.</p>\n";
  double low = 0, high = 0;
  for (const BarGroup& group : chart.groups) {
    for (const Bar& bar : group.bars) {
      low = std::min({low, bar.value, bar.low});
      high = std::max({high, bar.value, bar.high});
    }
  }
  const auto ticks = axis_ticks(low, high, 5);
  const double span = ticks.back() - ticks.front();
  const auto to_y = [&](double y) {
    return height - bottom - (y - ticks.front()) / span * (height - top - bottom);
  };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                                escape_html(chart.y_label));
  for (const double tick : ticks) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"tick\" x=\"{}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width - right, to_y(tick), to_y(tick), left - 8, to_y(tick) + 4, tick_text(tick));
  }
  const double group_width = (width - left - right) / static_cast<double>(chart.groups.size());
  const bool by_series =
      chart.series.size() > 1 || (chart.series.size() == 1 && !chart.series.front().empty());
  const bool crowded = chart.groups.size() > 12;  // no room for a number above each bar
  for (size_t g = 0; g < chart.groups.size(); ++g) {
    const BarGroup& group = chart.groups[g];
    const double middle = left + group_width * (static_cast<double>(g) + 0.5);
    const double bar_width = std::min(46.0, group_width * 0.8 / static_cast<double>(group.bars.size()));
    for (size_t i = 0; i < group.bars.size(); ++i) {
      const Bar& bar = group.bars[i];
      const double x =
          middle + bar_width * (static_cast<double>(i) - static_cast<double>(group.bars.size()) / 2);
      const size_t colour = by_series ? i % 6 : g % 6;
      svg += fmt::format(
          "<rect class=\"bar series-{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\"><title>{}: "
          "{:.4g}</title></rect>\n",
          colour, x + 1, to_y(std::max(bar.value, 0.0)), bar_width - 2, std::abs(to_y(0) - to_y(bar.value)),
          escape_html(group.label), bar.value);
      const double centre = x + bar_width / 2;
      if (bar.high > bar.low) {
        svg += fmt::format(
            "<path class=\"whisker\" d=\"M{0:.1f},{1:.1f}V{2:.1f}M{3:.1f},{1:.1f}h8M{3:.1f},{2:.1f}h8\"/>\n",
            centre, to_y(bar.low), to_y(bar.high), centre - 4);
      }
      if (crowded) continue;
      svg +=
          fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.1f}</text>\n",
                      centre, to_y(std::max(bar.high, 0.0)) - 5, bar.value);
    }
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       middle, height - bottom + 18, escape_html(group.label));
  }
  const std::string below = chart.x_label.empty() ? chart.y_label : chart.y_label + " by " + chart.x_label;
  svg += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
                     (left + width - right) / 2, height - 6, escape_html(below));
  if (chart.series.size() < 2) return svg;
  svg += "<p class=\"legend\">";
  for (size_t i = 0; i < chart.series.size(); ++i)
    svg += fmt::format("<span><i class=\"series-{}\"></i>{}</span> ", i % 6, escape_html(chart.series[i]));
  return svg + "</p>\n";
}

std::string heat_map(const HeatMap& map) {
  std::string html = "<table class=\"heat\"><tr><th></th>";
  for (const std::string& column : map.columns)
    html += "<th class=\"column\">" + escape_html(column) + "</th>";
  html += "</tr>\n";
  for (size_t row = 0; row < map.rows.size(); ++row) {
    html += "<tr><th>" + escape_html(map.rows[row]) + "</th>";
    for (const double value : map.values[row]) {
      std::string text = value >= 0.005 ? fmt::format("{:.2f}", value) : "";
      if (text.starts_with("0")) text.erase(0, 1);
      html += fmt::format("<td style=\"--share:{:.0f}%\" title=\"{:.3f}\">{}</td>", value * 100, value, text);
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace calque
