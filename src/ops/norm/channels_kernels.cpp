#include "ops/norm/channels_kernels.hpp"

#include <type_traits>

#include "ops/base/vector.hpp"
#include "ops/base/write.hpp"
#include "ops/norm/counts.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// A vector of doubles and as many elements of T; or one number of each, for the columns after the last whole vector.
template <typename T>
struct Lanes {
  using Doubles = Vector<double>;
  typedef T Elements __attribute__((vector_size(lanes<double> * sizeof(T)), aligned(alignof(T)), may_alias));
  static constexpr int count = lanes<double>;
  TRIREME_HOST_DEVICE static Doubles widen(Elements elements) { return __builtin_convertvector(elements, Doubles); }
};
template <typename T>
struct Lane {
  using Doubles = double;
  using Elements = T;
  static constexpr int count = 1;
  TRIREME_HOST_DEVICE static Doubles widen(T element) { return static_cast<double>(element); }
};

// The terms of the sums: an element and its square.
template <typename T>
struct Moments {
  const T* x;

  template <typename L>
  TRIREME_HOST_DEVICE void add(std::int64_t i, std::int64_t, typename L::Doubles& first, typename L::Doubles& second) const {
    const auto element = L::widen(load<typename L::Elements>(x + i));
    first += element;
    second += element * element;
  }
};

// The terms of the sums: dy where it counts, and dy * (x - center).
template <typename T, Counts counts, bool writes>
struct Gradients {
  PassedLines<T> of;
  T* passed;

  template <typename L>
  TRIREME_HOST_DEVICE void add(std::int64_t i, std::int64_t j, typename L::Doubles& first, typename L::Doubles& second) const {
    using Elements = typename L::Elements;
    const Elements difference = load<Elements>(of.x + i) - load<Elements>(of.center + j);
    Elements gradient = load<Elements>(of.dy + i);
    if constexpr (counts == Counts::where_y) gradient = load<Elements>(of.y + i) > T(0) ? gradient : Elements{};
    if constexpr (counts == Counts::where_x) {
      const Elements result = difference * load<Elements>(of.scale + j) + load<Elements>(of.shift + j);
      gradient = result > T(0) ? gradient : Elements{};
    }
    if constexpr (writes) store<Elements>(passed + i, gradient);
    first += L::widen(gradient);
    second += L::widen(gradient * difference);
  }
};

// Keeps the sums of `vectors` neighbouring vectors of columns in registers while it goes through all lines.
template <typename L, int vectors, typename Terms>
TRIREME_HOST_DEVICE void add_lines(const Terms& terms, std::int64_t begin, std::int64_t end, std::int64_t width,
                                   std::int64_t column, double* sums) {
  using Doubles = typename L::Doubles;
  Doubles first[vectors];
  Doubles second[vectors];
#pragma GCC unroll 8
  for (int vector = 0; vector < vectors; ++vector) {
    first[vector] = load<Doubles>(sums + column + vector * L::count);
    second[vector] = load<Doubles>(sums + width + column + vector * L::count);
  }
  for (std::int64_t line = begin; line < end; line += width) {
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; ++vector) {
      const std::int64_t j = column + vector * L::count;
      terms.template add<L>(line + j, j, first[vector], second[vector]);
    }
  }
#pragma GCC unroll 8
  for (int vector = 0; vector < vectors; ++vector) {
    store<Doubles>(sums + column + vector * L::count, first[vector]);
    store<Doubles>(sums + width + column + vector * L::count, second[vector]);
  }
}

// Goes through blocks of lines that stay in the L1 cache, and through the columns of each block in groups of `vectors` vectors.
template <typename T, typename Terms>
TRIREME_HOST_DEVICE void add_columns(const Terms& terms, std::int64_t count, std::int64_t width, double* sums) {
  constexpr int vectors = num_registers / 4;
  constexpr std::int64_t block = 4096;
  const std::int64_t whole = count / width * width;
  const std::int64_t step = (block < 8 * width ? 8 : block / width) * width;
  for (std::int64_t begin = 0; begin < whole; begin += step) {
    const std::int64_t end = begin + step < whole ? begin + step : whole;
    std::int64_t j = 0;
    for (; j + vectors * lanes<double> <= width; j += vectors * lanes<double>) {
      add_lines<Lanes<T>, vectors>(terms, begin, end, width, j, sums);
    }
    for (; j + lanes<double> <= width; j += lanes<double>) add_lines<Lanes<T>, 1>(terms, begin, end, width, j, sums);
    for (; j < width; ++j) add_lines<Lane<T>, 1>(terms, begin, end, width, j, sums);
  }
  for (std::int64_t j = 0; whole + j < count; ++j) add_lines<Lane<T>, 1>(terms, whole, whole + 1, width, j, sums);
}

template <typename T>
void add_moments(const T* x, std::int64_t count, std::int64_t width, double* sums) {
  add_columns<T>(Moments<T>{x}, count, width, sums);
}

// Calls visit(counts) with the Counts of `of` as an integral constant.
template <typename T, typename Visit>
void with_counts(const PassedLines<T>& of, Visit visit) {
  if (!of.relu) return visit(std::integral_constant<Counts, Counts::everywhere>{});
  if (of.y != nullptr) return visit(std::integral_constant<Counts, Counts::where_y>{});
  return visit(std::integral_constant<Counts, Counts::where_x>{});
}

template <typename T>
void add_gradients(const PassedLines<T>& of, T* passed, std::int64_t count, std::int64_t width, double* sums) {
  with_counts(of, [&](auto counts) {
    passed != nullptr ? add_columns<T>(Gradients<T, counts(), true>{of, passed}, count, width, sums)
                      : add_columns<T>(Gradients<T, counts(), false>{of, passed}, count, width, sums);
  });
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

template <Counts counts, typename T>
void gradient_lines(const GradientLines<T>& pass, std::int64_t count, std::int64_t width) {
  const T* center = pass.of.center;
  const T* scale = pass.of.scale;
  const T* result_shift = pass.of.shift;
  const T* x_scale = pass.x_scale;
  const T* shift = pass.shift;
  for_lines(
      count, width, [ =, &pass ](std::int64_t line, std::int64_t columns) __attribute__((always_inline)) {
        const T* x = pass.of.x + line;
        const T* y = counts == Counts::where_y ? pass.of.y + line : nullptr;
        const T* dy = pass.of.dy + line;
        write(
            pass.dx + line, columns, pass.accumulate_dx, [=](std::int64_t j) __attribute__((always_inline)) {
              const T difference = x[j] - center[j];
              T gradient = dy[j];
              if constexpr (counts == Counts::where_y) gradient = y[j] > T(0) ? gradient : T(0);
              if constexpr (counts == Counts::where_x) {
                gradient = difference * scale[j] + result_shift[j] > T(0) ? gradient : T(0);
              }
              return gradient * scale[j] + difference * x_scale[j] + shift[j];
            });
      });
}

template <typename T>
void gradients(const GradientLines<T>& pass, std::int64_t count, std::int64_t width) {
  with_counts(pass.of, [&](auto counts) { gradient_lines<counts()>(pass, count, width); });
}

template <typename T>
constexpr ChannelKernels<T> kernels{add_moments<T>, normalize<T>, add_gradients<T>, gradients<T>};

}  // namespace

const KernelTable<ChannelKernels> channel_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
