#include "ops/kernels/channels.hpp"

#include "ops/kernels/write.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

struct Terms {
  double first;
  double second;
};

// Adds term(element, column) of all elements to their columns, four lines at a time: sums of doubles are read and written once
// for each.
template <typename Term>
TRIREME_HOST_DEVICE void add_columns(std::int64_t count, std::int64_t width, double* sums, Term term) {
  double* first = sums;
  double* second = sums + width;
  std::int64_t line = 0;
  for (; line + 4 * width <= count; line += 4 * width) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const Terms a = term(line + j, j);
      const Terms b = term(line + width + j, j);
      const Terms c = term(line + 2 * width + j, j);
      const Terms d = term(line + 3 * width + j, j);
      first[j] += (a.first + b.first) + (c.first + d.first);
      second[j] += (a.second + b.second) + (c.second + d.second);
    }
  }
  for (; line < count; line += width) {
    const std::int64_t columns = width < count - line ? width : count - line;
#pragma omp simd
    for (std::int64_t j = 0; j < columns; ++j) {
      const Terms a = term(line + j, j);
      first[j] += a.first;
      second[j] += a.second;
    }
  }
}

template <typename T>
void add_moments(const T* x, std::int64_t count, std::int64_t width, double* sums) {
  add_columns(
      count, width, sums, [=](std::int64_t i, std::int64_t) __attribute__((always_inline)) {
        const auto element = static_cast<double>(x[i]);
        return Terms{element, element * element};
      });
}

// dy, or where there is ReLU its part that passed.
template <typename T, bool relu>
TRIREME_HOST_DEVICE T passed(const T* y, const T* dy, std::int64_t i) {
  if constexpr (relu) return y[i] > T(0) ? dy[i] : T(0);
  return dy[i];
}

template <bool relu, typename T>
void add_gradients_of(const GradientLines<T>& pass, std::int64_t count, std::int64_t width, double* sums) {
  const T* x = pass.x;
  const T* y = pass.y;
  const T* dy = pass.dy;
  const T* center = pass.center;
  add_columns(
      count, width, sums, [=](std::int64_t i, std::int64_t j) __attribute__((always_inline)) {
        const T gradient = passed<T, relu>(y, dy, i);
        return Terms{static_cast<double>(gradient), static_cast<double>(gradient * (x[i] - center[j]))};
      });
}

template <typename T>
void add_gradients(const GradientLines<T>& pass, std::int64_t count, std::int64_t width, double* sums) {
  pass.y != nullptr ? add_gradients_of<true>(pass, count, width, sums) : add_gradients_of<false>(pass, count, width, sums);
}

// Calls visit(first element, elements) for each line.
template <typename Visit>
TRIREME_HOST_DEVICE void for_lines(std::int64_t count, std::int64_t width, Visit visit) {
  for (std::int64_t line = 0; line < count; line += width) visit(line, width < count - line ? width : count - line);
}

template <bool residual, bool relu, typename T>
void normalize_lines(const NormalizedLines<T>& pass, std::int64_t count, std::int64_t width) {
  const T* center = pass.center;
  const T* scale = pass.scale;
  const T* shift = pass.shift;
  for_lines(
      count, width, [ =, &pass ](std::int64_t line, std::int64_t columns) __attribute__((always_inline)) {
        const T* x = pass.x + line;
        const T* addend = residual ? pass.residual + line : nullptr;
        write(
            pass.y + line, columns, false, [=](std::int64_t j) __attribute__((always_inline)) {
              T value = (x[j] - center[j]) * scale[j] + shift[j];
              if constexpr (residual) value += addend[j];
              if constexpr (relu) value = math::Relu::value(value);
              return value;
            });
      });
}

template <typename T>
void normalize(const NormalizedLines<T>& pass, std::int64_t count, std::int64_t width) {
  if (pass.residual != nullptr) {
    pass.relu ? normalize_lines<true, true>(pass, count, width) : normalize_lines<true, false>(pass, count, width);
  } else {
    pass.relu ? normalize_lines<false, true>(pass, count, width) : normalize_lines<false, false>(pass, count, width);
  }
}

template <bool relu, typename T>
void gradient_lines(const GradientLines<T>& pass, std::int64_t count, std::int64_t width) {
  const T* center = pass.center;
  const T* dy_scale = pass.dy_scale;
  const T* x_scale = pass.x_scale;
  const T* shift = pass.shift;
  for_lines(
      count, width, [ =, &pass ](std::int64_t line, std::int64_t columns) __attribute__((always_inline)) {
        const T* x = pass.x + line;
        const T* y = relu ? pass.y + line : nullptr;
        const T* dy = pass.dy + line;
        if (pass.dresidual != nullptr) {
          write(
              pass.dresidual + line, columns,
              false, [=](std::int64_t j) __attribute__((always_inline)) { return passed<T, relu>(y, dy, j); });
        }
        write(
            pass.dx + line, columns, pass.accumulate_dx, [=](std::int64_t j) __attribute__((always_inline)) {
              return passed<T, relu>(y, dy, j) * dy_scale[j] + (x[j] - center[j]) * x_scale[j] + shift[j];
            });
      });
}

template <typename T>
void gradients(const GradientLines<T>& pass, std::int64_t count, std::int64_t width) {
  pass.y != nullptr ? gradient_lines<true>(pass, count, width) : gradient_lines<false>(pass, count, width);
}

template <typename T>
constexpr ChannelKernels<T> kernels{add_moments<T>, normalize<T>, add_gradients<T>, gradients<T>};

}  // namespace

const KernelTable<ChannelKernels> channel_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
