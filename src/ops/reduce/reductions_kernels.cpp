#include "ops/reduce/reductions_kernels.hpp"

#include "ops/base/write.hpp"
#include "ops/reduce/reductions_body.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// Calls body(kind) with the kind as an integral constant. Integers have three kinds.
template <typename W, typename Body>
TRIREME_HOST_DEVICE void with_kind(Accumulation kind, Body body) {
  using enum Accumulation;
  const auto call = [&]<Accumulation which>() { body(std::integral_constant<Accumulation, which>()); };
  if constexpr (std::is_integral_v<W>) {
    switch (kind) {
      case maximum: return call.template operator()<maximum>();
      case minimum: return call.template operator()<minimum>();
      default: return call.template operator()<sum>();
    }
  } else {
    switch (kind) {
      case sum: return call.template operator()<sum>();
      case magnitudes: return call.template operator()<magnitudes>();
      case squares: return call.template operator()<squares>();
      case deviations: return call.template operator()<deviations>();
      case exponentials: return call.template operator()<exponentials>();
      case equals: return call.template operator()<equals>();
      case equal_magnitudes: return call.template operator()<equal_magnitudes>();
      case product: return call.template operator()<product>();
      case maximum: return call.template operator()<maximum>();
      case minimum: return call.template operator()<minimum>();
      case largest_magnitude: return call.template operator()<largest_magnitude>();
    }
  }
}

// is_extreme: kinds that select an element. has_shift: kinds that read a shift.
template <Accumulation kind>
inline constexpr bool is_extreme =
    kind == Accumulation::maximum || kind == Accumulation::minimum || kind == Accumulation::largest_magnitude;
template <Accumulation kind>
inline constexpr bool has_shift = kind == Accumulation::deviations || kind == Accumulation::exponentials ||
                                  kind == Accumulation::equals || kind == Accumulation::equal_magnitudes;
// The type of a partial result: extremes of floats are float, all others are W.
template <Accumulation kind, typename X, typename W>
using Partial = std::conditional_t<std::is_same_v<X, float> && is_extreme<kind>, X, W>;

// Independent results hide the latency of an addition.
constexpr std::int64_t lanes = 32;

// Adds four floats in float before it adds to the sum in double, because converting each of them would take longer than reading
// it.
template <Accumulation kind, typename X>
inline constexpr bool adds_fours = std::is_same_v<X, float>&& kind == Accumulation::sum;
template <typename W, typename X>
TRIREME_HOST_DEVICE W sum_of_four(X a, X b, X c, X d) {
  return static_cast<W>((a + b) + (c + d));
}

template <Accumulation kind, typename X, typename W>
TRIREME_HOST_DEVICE W of_row(const X* x, std::int64_t count, W shift) {
  using P = Partial<kind, X, W>;
  const P partial_shift = static_cast<P>(shift);
  P total = nothing<P>(kind);
  if (count < lanes) {
    for (std::int64_t i = 0; i < count; ++i) total = combined(kind, total, accumulated(kind, x[i], partial_shift));
    return static_cast<W>(total);
  }
  P parts[lanes];
  for (P& part : parts) part = nothing<P>(kind);
  std::int64_t i = 0;
  if constexpr (adds_fours<kind, X>) {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const X* four = x + i;
#pragma omp simd
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        parts[lane] += sum_of_four<P>(four[lane], four[lanes + lane], four[2 * lanes + lane], four[3 * lanes + lane]);
      }
    }
  }
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      parts[lane] = combined(kind, parts[lane], accumulated(kind, x[i + lane], partial_shift));
    }
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) {
    parts[lane] = combined(kind, parts[lane], accumulated(kind, x[i + lane], partial_shift));
  }
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) parts[lane] = combined(kind, parts[lane], parts[lane + half]);
  }
  return static_cast<W>(parts[0]);
}

template <typename X, typename W>
void rows(Accumulation kind, const X* x, std::int64_t count, std::int64_t width, const W* shift, W* results) {
  with_kind<W>(kind, [=](auto which) {
    for (std::int64_t row = 0; row < count; ++row) {
      results[row] = of_row<which()>(x + row * width, width, shift == nullptr ? W(0) : shift[row]);
    }
  });
}

// The extremes of columns, which need no shift, in the type of the elements.
template <Accumulation kind, typename X, typename W>
void extremes_of_columns(const X* x, std::int64_t count, std::int64_t stride, std::int64_t width, W* results, bool further) {
  using P = Partial<kind, X, W>;
  constexpr std::int64_t block = 128;
  for (; width > 0; x += block, results += block, width -= block) {
    const std::int64_t columns_here = width < block ? width : block;
    P best[block];
    for (std::int64_t j = 0; j < columns_here; ++j) best[j] = further ? static_cast<P>(results[j]) : nothing<P>(kind);
    for (std::int64_t row = 0; row < count; ++row) {
      const X* from = x + row * stride;
#pragma omp simd
      for (std::int64_t j = 0; j < columns_here; ++j) best[j] = combined(kind, best[j], accumulated(kind, from[j], P(0)));
    }
    for (std::int64_t j = 0; j < columns_here; ++j) results[j] = static_cast<W>(best[j]);
  }
}

template <typename X, typename W>
void columns(Accumulation kind, const X* x, std::int64_t count, std::int64_t stride, std::int64_t width, const W* shift,
             W* results, bool further) {
  with_kind<W>(kind, [=](auto which) {
    if constexpr (is_extreme<which()>) {
      extremes_of_columns<which()>(x, count, stride, width, results, further);
    } else {
      const auto with_shift = [=](auto is_given) {
        const auto of = [=](std::int64_t row, std::int64_t j) {
          return accumulated(which(), x[row * stride + j], is_given() ? shift[j] : W(0));
        };
        if (!further) {
          for (std::int64_t j = 0; j < width; ++j) results[j] = nothing<W>(which());
        }
        std::int64_t row = 0;
        for (; row + 4 <= count; row += 4) {
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) {
            if constexpr (adds_fours<which(), X>) {
              const X* at = x + row * stride + j;
              results[j] += sum_of_four<W>(at[0], at[stride], at[2 * stride], at[3 * stride]);
            } else {
              const W first = combined(which(), of(row, j), of(row + 1, j));
              const W second = combined(which(), of(row + 2, j), of(row + 3, j));
              results[j] = combined(which(), results[j], combined(which(), first, second));
            }
          }
        }
        for (; row < count; ++row) {
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) results[j] = combined(which(), results[j], of(row, j));
        }
      };
      if constexpr (has_shift<which()>) {
        if (shift != nullptr) return with_shift(std::true_type());
      }
      with_shift(std::false_type());
    }
  });
}

template <typename W>
void combine(Accumulation kind, W* a, const W* b, std::int64_t count) {
  with_kind<W>(accumulation_of_parts(kind), [=](auto which) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) a[i] = combined(which(), a[i], b[i]);
  });
}

template <typename Body>
TRIREME_HOST_DEVICE void with_slope(Slope kind, Body body) {
  using enum Slope;
  const auto call = [&]<Slope which>() { body(std::integral_constant<Slope, which>()); };
  switch (kind) {
    case one: return call.template operator()<one>();
    case itself: return call.template operator()<itself>();
    case sign: return call.template operator()<sign>();
    case deviation: return call.template operator()<deviation>();
    case exponential: return call.template operator()<exponential>();
    case equal: return call.template operator()<equal>();
    case equal_magnitude: return call.template operator()<equal_magnitude>();
  }
}

template <typename X>
void slope_of_row(Slope kind, const X* x, double scale, double shift, X* dx, std::int64_t count, bool accumulate) {
  with_slope(kind, [=](auto which) {
    write(dx, count, accumulate, [=](std::int64_t i) {
      const X at = which() == Slope::one ? X(0) : x[i];
      return static_cast<X>(scale * slope_at(which(), at, shift));
    });
  });
}

template <typename X>
void slope_of_columns(Slope kind, const X* x, const double* scale, const double* shift, X* dx, std::int64_t count,
                      bool accumulate) {
  with_slope(kind, [=](auto which) {
    constexpr bool shifts = which() == Slope::deviation || which() == Slope::exponential || which() == Slope::equal ||
                            which() == Slope::equal_magnitude;
    write(dx, count, accumulate, [=](std::int64_t i) {
      const X at = which() == Slope::one ? X(0) : x[i];
      return static_cast<X>(scale[i] * slope_at(which(), at, shifts ? shift[i] : 0.0));
    });
  });
}

template <typename X, typename W>
constexpr AccumulationKernels<X, W> kernels{rows<X, W>, columns<X, W>, combine<W>};
template <typename X>
constexpr SlopeKernels<X> slope_kernels{slope_of_row<X>, slope_of_columns<X>};

}  // namespace

const ReductionsKernels reductions_kernels{kernels<float, double>,
                                           kernels<double, double>,
                                           kernels<std::int32_t, std::int64_t>,
                                           kernels<std::int64_t, std::int64_t>,
                                           kernels<bool, std::int64_t>,
                                           slope_kernels<float>,
                                           slope_kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
