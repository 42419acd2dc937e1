#pragma once

#include <cstdint>

#include "trireme/device/isa.hpp"

namespace trireme::ops {

enum class Accumulation : std::uint8_t;
enum class Slope : std::uint8_t;

// X: float, double, std::int32_t, std::int64_t, bool; W: the type of results.
template <typename X, typename W>
struct AccumulationKernels {
  // results[row] of x[rows, width], shift[rows] or null; at most sum_block elements in a row.
  void (*rows)(Accumulation kind, const X* x, std::int64_t rows, std::int64_t width, const W* shift, W* results);
  // results[j] of x[row * stride + j], j < width, shift[width] or null; `further`: combined with the old results.
  void (*columns)(Accumulation kind, const X* x, std::int64_t rows, std::int64_t stride, std::int64_t width, const W* shift,
                  W* results, bool further);
  // a[i] = a[i] and b[i] combined, as results of parts of this kind.
  void (*combine)(Accumulation kind, W* a, const W* b, std::int64_t count);
};

template <typename X>
struct SlopeKernels {
  // dx[i] = scale * slope(x[i], shift), or += with `accumulate`.
  void (*row)(Slope kind, const X* x, double scale, double shift, X* dx, std::int64_t count, bool accumulate);
  // The same with a scale and a shift for each i.
  void (*columns)(Slope kind, const X* x, const double* scale, const double* shift, X* dx, std::int64_t count, bool accumulate);
};

struct ReductionsKernels {
  AccumulationKernels<float, double> of_float;
  AccumulationKernels<double, double> of_double;
  AccumulationKernels<std::int32_t, std::int64_t> of_int32;
  AccumulationKernels<std::int64_t, std::int64_t> of_int64;
  AccumulationKernels<bool, std::int64_t> of_bool;
  SlopeKernels<float> slope_of_float;
  SlopeKernels<double> slope_of_double;
};

TRIREME_KERNEL_TABLE(ReductionsKernels, reductions_kernels)

}  // namespace trireme::ops
