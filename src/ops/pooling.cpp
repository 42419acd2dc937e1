#include "trireme/ops/pooling.hpp"

#include <algorithm>
#include <limits>

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/pooling.hpp"
#include "ops/parallel.hpp"
#include "ops/pooling_windows.hpp"

namespace trireme::ops {
namespace {

// Calls body(window, element of x, element of y, divisor) for the windows of row `row` of an image with `x` pixels.
template <typename Body>
void for_windows(const PoolWindows& windows, const Shape& x, std::size_t row, const Body& body) {
  const std::int64_t channels = x[3];
  const std::int64_t row_elements = x[2] * channels;
  const PoolSpan& down = windows.rows[row];
  PoolWindow window{.rows = down.count,
                    .columns = 0,
                    .row_stride = windows.dilation.height * row_elements,
                    .column_stride = windows.dilation.width * channels,
                    .channels = channels};
  std::int64_t to = static_cast<std::int64_t>(row * windows.columns.size()) * channels;
  for (const PoolSpan& across : windows.columns) {
    window.columns = across.count;
    body(window, down.begin * row_elements + across.begin * channels, to, down.divisor * across.divisor);
    to += channels;
  }
}

// Calls body(window, elements of x, elements of y, the first one's place in the whole y, divisor) for all windows.
template <typename T, typename Body>
void forward(const PoolWindows& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y, const Body& body) {
  if (x.numel() == 0) return;
  const std::int64_t x_elements = x.numel() / x.dim(0);
  const std::int64_t y_elements = y.numel() / y.dim(0);
  parallel_rows(x.dim(0), x_elements, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> x_floats(x_elements), y_floats(y_elements);
    for (std::int64_t image = begin; image < end; ++image) {
      const std::int64_t place = image * y_elements;
      const auto* from = x_floats.read(x.data() + image * x_elements);
      auto* to = y_floats.place(y.data() + place);
      for (std::size_t row = 0; row < windows.rows.size(); ++row) {
        for_windows(windows, x.shape(), row,
                    [&](const PoolWindow& window, std::int64_t i, std::int64_t j, std::int64_t divisor) {
                      body(window, from + i, to + j, place + j, divisor);
                    });
      }
      y_floats.write(y.data() + place);
    }
  });
}

// The same with elements of dx and dy; body adds to dx. Rows to be overwritten become zero right before their first window,
// while they are in the cache.
template <typename T, typename Body>
void backward(const PoolWindows& windows, Tensor<T, Cpu>& dx, const Tensor<T, Cpu>& dy, bool accumulate, const Body& body) {
  if (dx.numel() == 0) return;
  const std::int64_t x_elements = dx.numel() / dx.dim(0);
  const std::int64_t y_elements = dy.numel() / dy.dim(0);
  const std::int64_t x_rows = dx.dim(1);
  const std::int64_t row_elements = x_elements / x_rows;
  parallel_rows(dx.dim(0), x_elements, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> x_floats(x_elements), y_floats(y_elements);
    for (std::int64_t image = begin; image < end; ++image) {
      const std::int64_t place = image * y_elements;
      T* result = dx.data() + image * x_elements;
      const auto* from = y_floats.read(dy.data() + place);
      if (accumulate) x_floats.read(result);
      auto* to = x_floats.place(result);
      std::int64_t zeroed = accumulate ? x_rows : 0;
      const auto zero_until = [&](std::int64_t row) {
        if (row <= zeroed) return;
        std::fill_n(to + zeroed * row_elements, (row - zeroed) * row_elements, Accumulate<T>{0});
        zeroed = row;
      };
      for (std::size_t row = 0; row < windows.rows.size(); ++row) {
        const PoolSpan& down = windows.rows[row];
        zero_until(down.begin + (down.count - 1) * windows.dilation.height + 1);
        for_windows(windows, dx.shape(), row,
                    [&](const PoolWindow& window, std::int64_t i, std::int64_t j, std::int64_t divisor) {
                      body(window, to + i, from + j, place + j, divisor);
                    });
      }
      zero_until(x_rows);
      x_floats.write(result);
    }
  });
}

template <typename T>
void run_max(std::string_view op, const PoolWindows& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y,
             PoolArgmax<Cpu>& argmax) {
  require_shape(op, "argmax", argmax.shape(), y.shape());
  const auto largest = [](const std::vector<PoolSpan>& along) { return std::ranges::max(along, {}, &PoolSpan::count).count; };
  require(largest(windows.rows) * largest(windows.columns) <= 1 + std::numeric_limits<std::uint16_t>::max(),
          "{}: windows of {} x {} pixels have more than the 65536 that a place counts", op, largest(windows.rows),
          largest(windows.columns));
  const auto& kernels = pooling_kernels().of<Accumulate<T>>();
  forward(windows, x, y, [&](const PoolWindow& window, const auto* from, auto* to, std::int64_t place, std::int64_t) {
    kernels.max(window, from, to, argmax.data() + place);
  });
}

template <typename T>
void run_max_backward(std::string_view op, const PoolWindows& windows, const Tensor<T, Cpu>& dy, const PoolArgmax<Cpu>& argmax,
                      Tensor<T, Cpu>& dx, bool accumulate) {
  require_shape(op, "argmax", argmax.shape(), dy.shape());
  const auto& kernels = pooling_kernels().of<Accumulate<T>>();
  backward(windows, dx, dy, accumulate,
           [&](const PoolWindow& window, auto* to, const auto* from, std::int64_t place, std::int64_t) {
             kernels.max_backward(window, from, argmax.data() + place, to);
           });
}

template <typename T>
void run_average(const PoolWindows& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y) {
  using A = Accumulate<T>;
  const auto& kernels = pooling_kernels().of<A>();
  forward(windows, x, y, [&](const PoolWindow& window, const A* from, A* to, std::int64_t, std::int64_t divisor) {
    kernels.average(window, from, A{1} / static_cast<A>(divisor), to);
  });
}

template <typename T>
void run_average_backward(const PoolWindows& windows, const Tensor<T, Cpu>& dy, Tensor<T, Cpu>& dx, bool accumulate) {
  using A = Accumulate<T>;
  const auto& kernels = pooling_kernels().of<A>();
  backward(windows, dx, dy, accumulate,
           [&](const PoolWindow& window, A* to, const A* from, std::int64_t, std::int64_t divisor) {
             kernels.average_backward(window, from, A{1} / static_cast<A>(divisor), to);
           });
}

}  // namespace

template <typename T, typename D>
void max_pool2d(const Tensor<T, D>& x, const Pool2dOptions& options, Tensor<T, D>& y, PoolArgmax<D>& argmax) {
  run_max("max_pool2d", sliding_windows("max_pool2d", x.shape(), y.shape(), options), x, y, argmax);
}

template <typename T, typename D>
void max_pool2d_backward(const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, const Pool2dOptions& options, Tensor<T, D>& dx,
                         bool accumulate) {
  constexpr auto op = "max_pool2d_backward";
  run_max_backward(op, sliding_windows(op, dx.shape(), dy.shape(), options), dy, argmax, dx, accumulate);
}

template <typename T, typename D>
void avg_pool2d(const Tensor<T, D>& x, const AvgPool2dOptions& options, Tensor<T, D>& y) {
  run_average(sliding_windows("avg_pool2d", x.shape(), y.shape(), options), x, y);
}

template <typename T, typename D>
void avg_pool2d_backward(const Tensor<T, D>& dy, const AvgPool2dOptions& options, Tensor<T, D>& dx, bool accumulate) {
  run_average_backward(sliding_windows("avg_pool2d_backward", dx.shape(), dy.shape(), options), dy, dx, accumulate);
}

template <typename T, typename D>
void adaptive_max_pool2d(const Tensor<T, D>& x, Tensor<T, D>& y, PoolArgmax<D>& argmax) {
  run_max("adaptive_max_pool2d", adaptive_windows("adaptive_max_pool2d", x.shape(), y.shape()), x, y, argmax);
}

template <typename T, typename D>
void adaptive_max_pool2d_backward(const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, Tensor<T, D>& dx, bool accumulate) {
  constexpr auto op = "adaptive_max_pool2d_backward";
  run_max_backward(op, adaptive_windows(op, dx.shape(), dy.shape()), dy, argmax, dx, accumulate);
}

template <typename T, typename D>
void adaptive_avg_pool2d(const Tensor<T, D>& x, Tensor<T, D>& y) {
  run_average(adaptive_windows("adaptive_avg_pool2d", x.shape(), y.shape()), x, y);
}

template <typename T, typename D>
void adaptive_avg_pool2d_backward(const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  run_average_backward(adaptive_windows("adaptive_avg_pool2d_backward", dx.shape(), dy.shape()), dy, dx, accumulate);
}

#define TRIREME_INSTANTIATE(T)                                                                                            \
  template void max_pool2d(const Tensor<T, Cpu>&, const Pool2dOptions&, Tensor<T, Cpu>&, PoolArgmax<Cpu>&);               \
  template void max_pool2d_backward(const Tensor<T, Cpu>&, const PoolArgmax<Cpu>&, const Pool2dOptions&, Tensor<T, Cpu>&, \
                                    bool);                                                                                \
  template void avg_pool2d(const Tensor<T, Cpu>&, const AvgPool2dOptions&, Tensor<T, Cpu>&);                              \
  template void avg_pool2d_backward(const Tensor<T, Cpu>&, const AvgPool2dOptions&, Tensor<T, Cpu>&, bool);               \
  template void adaptive_max_pool2d(const Tensor<T, Cpu>&, Tensor<T, Cpu>&, PoolArgmax<Cpu>&);                            \
  template void adaptive_max_pool2d_backward(const Tensor<T, Cpu>&, const PoolArgmax<Cpu>&, Tensor<T, Cpu>&, bool);       \
  template void adaptive_avg_pool2d(const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                              \
  template void adaptive_avg_pool2d_backward(const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
