#include <algorithm>

#include "ops/convolution/convolution_plan.hpp"

namespace trireme::ops {
namespace {

std::int64_t num_x(const ConvolutionShape& s) { return s.batch * s.x.height * s.x.width * s.in; }
std::int64_t num_y(const ConvolutionShape& s) { return s.batch * s.y.height * s.y.width * s.out; }
std::int64_t num_weights(const ConvolutionShape& s) { return s.out * (s.in / s.groups) * s.kernel.height * s.kernel.width; }

// Calls body(y element, x element, weight element) for every product of the convolution.
template <typename Body>
void for_each_product(const ConvolutionShape& s, const Body& body) {
  const std::int64_t group_in = s.in / s.groups;
  const std::int64_t group_out = s.out / s.groups;
  const std::int64_t taps = s.kernel.height * s.kernel.width;
  for (std::int64_t to = 0; to < num_y(s) / s.out; ++to) {
    const std::int64_t row = to / s.y.width % s.y.height;
    const std::int64_t image = to / (s.y.width * s.y.height);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t i = row * s.stride.height - s.padding.height + tap / s.kernel.width * s.dilation.height;
      const std::int64_t j = to % s.y.width * s.stride.width - s.padding.width + tap % s.kernel.width * s.dilation.width;
      if (i < 0 || i >= s.x.height || j < 0 || j >= s.x.width) continue;
      const std::int64_t from = (image * s.x.height + i) * s.x.width + j;
      for (std::int64_t out = 0; out < s.out; ++out) {
        for (std::int64_t k = 0; k < group_in; ++k) {
          body(to * s.out + out, from * s.in + out / group_out * group_in + k, (out * group_in + k) * taps + tap);
        }
      }
    }
  }
}

}  // namespace

void run_convolution(const ConvolutionShape& shape, const double* x, const double* weight, const double* bias, double* y) {
  for (std::int64_t i = 0; i < num_y(shape); ++i) y[i] = bias != nullptr ? bias[i % shape.out] : 0;
  for_each_product(shape, [=](auto to, auto from, auto w) { y[to] += x[from] * weight[w]; });
}

void run_convolution_data(const ConvolutionShape& shape, const double* dy, const double* weight, double* dx) {
  std::fill_n(dx, num_x(shape), 0.0);
  for_each_product(shape, [=](auto to, auto from, auto w) { dx[from] += dy[to] * weight[w]; });
}

void run_convolution_weight(const ConvolutionShape& shape, const double* x, const double* dy, double* dweight) {
  std::fill_n(dweight, num_weights(shape), 0.0);
  for_each_product(shape, [=](auto to, auto from, auto w) { dweight[w] += x[from] * dy[to]; });
}

}  // namespace trireme::ops
