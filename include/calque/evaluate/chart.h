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

// Round values that cover low … high in about `count` steps.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace calque
