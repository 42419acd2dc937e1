#include <algorithm>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/pooling/pooling_kernels.hpp"
#include "ops/pooling/pooling_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// The spans of pixels of all windows, along both dims.
struct PoolSpans {
  explicit PoolSpans(const PoolWindows& windows)
      : rows(along(windows.rows)), columns(along(windows.columns)), dilation(windows.rows.dilation, windows.columns.dilation) {}

  std::vector<PoolSpan> rows;
  std::vector<PoolSpan> columns;
  Extent2d dilation;

 private:
  static std::vector<PoolSpan> along(const PoolDim& dim) {
    std::vector<PoolSpan> spans;
    for (std::int32_t window = 0; window < dim.windows; ++window) spans.push_back(dim.span(window));
    return spans;
  }
};

// Calls body(window, element of x, element of y, divisor) for the windows in row `row` of the result.
template <typename Body>
void for_windows(const PoolSpans& windows, const Shape& x, std::size_t row, const Body& body) {
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

// Calls body(window, pointer into x, pointer into y, index in y, divisor) for all windows.
template <typename T, typename Body>
void forward(const PoolSpans& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y, const Body& body) {
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

// The same with pointers into dx and dy; body adds to dx. Rows that are overwritten become zero right before their first
// window, while they are in the cache.
template <typename T, typename Body>
void backward(const PoolSpans& windows, Tensor<T, Cpu>& dx, const Tensor<T, Cpu>& dy, bool accumulate, const Body& body) {
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

}  // namespace

template <>
template <typename T>
void Pooling<Cpu>::max(const PoolWindows& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y, PoolArgmax<Cpu>& argmax) {
  const auto& kernels = pooling_kernels().of<Accumulate<T>>();
  forward(PoolSpans(windows), x, y,
          [&](const PoolWindow& window, const auto* from, auto* to, std::int64_t place, std::int64_t) {
            kernels.max(window, from, to, argmax.data() + place);
          });
}

template <>
template <typename T>
void Pooling<Cpu>::max_backward(const PoolWindows& windows, const Tensor<T, Cpu>& dy, const PoolArgmax<Cpu>& argmax,
                                Tensor<T, Cpu>& dx, bool accumulate) {
  const auto& kernels = pooling_kernels().of<Accumulate<T>>();
  backward(PoolSpans(windows), dx, dy, accumulate,
           [&](const PoolWindow& window, auto* to, const auto* from, std::int64_t place, std::int64_t) {
             kernels.max_backward(window, from, argmax.data() + place, to);
           });
}

template <>
template <typename T>
void Pooling<Cpu>::average(const PoolWindows& windows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y) {
  using A = Accumulate<T>;
  const auto& kernels = pooling_kernels().of<A>();
  forward(PoolSpans(windows), x, y, [&](const PoolWindow& window, const A* from, A* to, std::int64_t, std::int64_t divisor) {
    kernels.average(window, from, A{1} / static_cast<A>(divisor), to);
  });
}

template <>
template <typename T>
void Pooling<Cpu>::average_backward(const PoolWindows& windows, const Tensor<T, Cpu>& dy, Tensor<T, Cpu>& dx, bool accumulate) {
  using A = Accumulate<T>;
  const auto& kernels = pooling_kernels().of<A>();
  backward(PoolSpans(windows), dx, dy, accumulate,
           [&](const PoolWindow& window, A* to, const A* from, std::int64_t, std::int64_t divisor) {
             kernels.average_backward(window, from, A{1} / static_cast<A>(divisor), to);
           });
}

TRIREME_INSTANTIATE(FLOATS, max_pool2d, Cpu)
TRIREME_INSTANTIATE(FLOATS, max_pool2d_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, avg_pool2d, Cpu)
TRIREME_INSTANTIATE(FLOATS, avg_pool2d_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, adaptive_max_pool2d, Cpu)
TRIREME_INSTANTIATE(FLOATS, adaptive_max_pool2d_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, adaptive_avg_pool2d, Cpu)
TRIREME_INSTANTIATE(FLOATS, adaptive_avg_pool2d_backward, Cpu)

}  // namespace trireme::ops
