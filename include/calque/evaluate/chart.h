// Charts as SVG, in the colours of the page they stand on, light or dark.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calque {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;
};

struct LineChart {
  std::string y_label;
  std::string x_label;
  std::vector<Series> series;
};

// Series without points are left out; a chart without any says so.
std::string line_chart(const LineChart& chart);

// A value with the interval around it; low = high = value draws none.
struct Bar {
  double value, low, high;
};
struct BarGroup {
  std::string label;
  std::vector<Bar> bars;  // one for each series
};
struct BarChart {
  std::string y_label;
  std::string x_label;
  std::vector<std::string> series;  // names for the legend; a single empty one needs none
  std::vector<BarGroup> groups;
};
std::string bar_chart(const BarChart& chart);

// A table of numbers from 0 to 1 as shades: rows by columns, each named.
struct HeatMap {
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // [row][column]
};
std::string heat_map(const HeatMap& map);

// Round values that cover low … high in about `count` steps.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace calque
