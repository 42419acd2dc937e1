#include "trireme/ops/pooling.hpp"

#include <algorithm>
#include <limits>

#include "ops/check.hpp"
#include "ops/kernels/pooling.hpp"
#include "ops/parallel.hpp"
#include "ops/pooling_windows.hpp"

namespace trireme::ops {
namespace {

// Calls body(window, element of x, element of y, divisor) for the windows of row `row` of the image number `image`.
template <typename Body>
void for_windows(const PoolWindows& windows, const Shape& x, std::int64_t image, std::size_t row, const Body& body) {
  const std::int64_t channels = x[3];
  const std::int64_t row_elements = x[2] * channels;
  const PoolSpan& down = windows.rows[row];
  const auto columns = static_cast<std::int64_t>(windows.columns.size());
  const std::int64_t from = (image * x[1] + down.begin) * row_elements;
  const std::int64_t to =
      (image * static_cast<std::int64_t>(windows.rows.size()) + static_cast<std::int64_t>(row)) * columns * channels;
  PoolWindow window{.rows = down.count,
                    .columns = 0,
                    .row_stride = windows.dilation.height * row_elements,
                    .column_stride = windows.dilation.width * channels,
                    .channels = channels};
  for (std::int64_t column = 0; column < columns; ++column) {
    const PoolSpan& across = windows.columns[static_cast<std::size_t>(column)];
    window.columns = across.count;
    body(window, from + across.begin * channels, to + column * channels, down.divisor * across.divisor);
  }
}

template <typename Body>
void forward(const PoolWindows& windows, const Shape& x, const Body& body) {
  if (x.numel() == 0) return;
  const auto rows = static_cast<std::int64_t>(windows.rows.size());
  parallel_rows(x[0] * rows, x[1] * x[2] * x[3] / rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      for_windows(windows, x, index / rows, static_cast<std::size_t>(index % rows), body);
    }
  });
}

// body adds to dx. Rows that are overwritten become zero right before their first window, while they are in the cache.
template <typename T, typename Body>
void backward(const PoolWindows& windows, Tensor<T, Cpu>& dx, bool accumulate, const Body& body) {
  const Shape& x = dx.shape();
  if (x.numel() == 0) return;
  const std::int64_t row_elements = x[2] * x[3];
  parallel_rows(x[0], x[1] * row_elements, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      std::int64_t zeroed = accumulate ? x[1] : 0;
      const auto zero_until = [&](std::int64_t row) {
        if (row <= zeroed) return;
        std::fill_n(dx.data() + (image * x[1] + zeroed) * row_elements, (row - zeroed) * row_elements, T{0});
        zeroed = row;
      };
      for (std::size_t row = 0; row < windows.rows.size(); ++row) {
        const PoolSpan& down = windows.rows[row];
        zero_until(down.begin + (down.count - 1) * windows.dilation.height + 1);
        for_windows(windows, x, image, row, body);
      }
      zero_until(x[1]);
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
  const auto& kernels = pooling_kernels().of<T>();
  forward(windows, x.shape(), [&](const PoolWindow& window, std::int64_t from, std::int64_t to, std::int64_t) {
    kernels.max(window, x.data() + from, y.data() + to, argmax.data() + to);
  });
}

template <typename T>
void run_max_backward(std::string_view op, const PoolWindows& windows, const Tensor<T, Cpu>& dy, const PoolArgmax<Cpu>& argmax,
                      Tensor<T, Cpu>& dx, bool accumulate) {
  require_shape(op, "argmax", argmax.shape(), dy.shape());
  const auto& kernels = pooling_kernels().of<T>();
  backward(windows, dx, accumulate, [&](const PoolWindow& window, std::int64_t to, std::int64_t from, std::int64_t) {
    kernels.max_backward(window, dy.data() + from, argmax.data() + from, dx.data() + to);
  });
}

template <typename T>
void run_average(const PoolWindows& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y) {
  const auto& kernels = pooling_kernels().of<T>();
  forward(windows, x.shape(), [&](const PoolWindow& window, std::int64_t from, std::int64_t to, std::int64_t divisor) {
    kernels.average(window, x.data() + from, T{1} / static_cast<T>(divisor), y.data() + to);
  });
}

template <typename T>
void run_average_backward(const PoolWindows& windows, const Tensor<T, Cpu>& dy, Tensor<T, Cpu>& dx, bool accumulate) {
  const auto& kernels = pooling_kernels().of<T>();
  backward(windows, dx, accumulate, [&](const PoolWindow& window, std::int64_t to, std::int64_t from, std::int64_t divisor) {
    kernels.average_backward(window, dy.data() + from, T{1} / static_cast<T>(divisor), dx.data() + to);
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
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
