#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

constexpr double width = 760;
constexpr double height = 420;
constexpr double left = 80;
constexpr double right = 30;
constexpr double top = 50;
constexpr double bottom = 60;

struct Bounds {
  double least_x = std::numeric_limits<double>::max();
  double most_x = 0;
  double most_y = 0;
};

Bounds bounds_of(const Plot& plot) {
  Bounds bounds;
  for (const Curve& curve : plot.curves) {
    for (const auto& [x, y] : curve.points) {
      bounds.least_x = std::min(bounds.least_x, x);
      bounds.most_x = std::max(bounds.most_x, x);
      bounds.most_y = std::max(bounds.most_y, y);
    }
  }
  bounds.most_y = bounds.most_y > 0 ? 1.1 * bounds.most_y : 1;
  if (bounds.most_x <= bounds.least_x) bounds.most_x = 2 * bounds.least_x;
  return bounds;
}

}  // namespace

std::string draw(const Plot& plot) {
  const Bounds bounds = bounds_of(plot);
  const auto across = [&](double x) {
    return left + (width - left - right) * std::log(x / bounds.least_x) / std::log(bounds.most_x / bounds.least_x);
  };
  const auto down = [&](double y) { return height - bottom - (height - top - bottom) * std::max(0.0, y) / bounds.most_y; };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"28\" font-size=\"16\">{3}</text>\n",
      width, height, left, plot.title);
  for (int line = 0; line <= 4; ++line) {
    const double y = bounds.most_y * line / 4;
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.3g}</text>\n",
        left, width - right, down(y), left - 8, down(y) + 4, y);
  }
  for (const auto& [x, y] : plot.curves.front().points) {
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.3g}</text>\n", across(x), height - bottom + 20, x);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text x=\"20\" y=\"{}\" transform=\"rotate(-90 20 {})\" text-anchor=\"middle\">{}</text>\n",
      (left + width - right) / 2, height - 15, plot.x, height / 2, height / 2, plot.y);
  double legend = top;
  for (const Curve& curve : plot.curves) {
    std::string points;
    for (const auto& [x, y] : curve.points) {
      points += fmt::format("{:.1f},{:.1f} ", across(x), down(y));
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", across(x), down(y), curve.colour);
    }
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n"
        "<text x=\"{}\" y=\"{}\" fill=\"{}\" text-anchor=\"end\">{}</text>\n",
        points, curve.colour, width - right, legend, curve.colour, curve.label);
    legend += 18;
  }
  return svg + "</svg>\n";
}
