// Charts: line charts, bar charts and heat maps for a Page, in its light or dark colours.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calque {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;
  bool muted = false;  // grey, behind the others, without a place in the legend
};

struct LineChart {
  std::string y_label;
  std::string x_label;
  std::vector<Series> series;
};

// Series without points are left out. A chart without any points becomes a short notice.
std::string line_chart(const LineChart& chart);

// A value with its interval; no interval is drawn if low = high = value.
struct Bar {
  double value, low, high;
};
struct BarGroup {
  std::string label;
  std::vector<Bar> bars;  // one per series
};
struct BarChart {
  std::string y_label;
  std::string x_label;
  std::vector<std::string> series;  // names for the legend; a single empty name: colours by group
  std::vector<BarGroup> groups;
};
std::string bar_chart(const BarChart& chart);

// A table of numbers from 0 to 1, shown as shades, with names for rows and columns.
struct HeatMap {
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // [row][column]
};
std::string heat_map(const HeatMap& map);

// Round tick values that cover low … high in about `count` steps.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace calque
