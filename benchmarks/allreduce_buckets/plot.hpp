#pragma once

#include <string>
#include <utility>
#include <vector>

struct Curve {
  std::string label;
  std::string colour;
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string title;
  std::string x;  // logarithmic
  std::string y;  // from 0
  std::vector<Curve> curves;
};

std::string draw(const Plot& plot);  // as SVG
