#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/base/check.hpp"
#include "ops/reduce/reduce_plan.hpp"
#include "ops/reduce/reductions_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/movement.hpp"
#include "trireme/ops/reduce/reductions.hpp"

// The operations of ops/reduce/reductions.hpp for any device: Reductions<D> does the work.
namespace trireme::ops {

template <typename D>
struct Reductions {
  // values[outer, inner] of x[outer, reduced, inner]; shift: a number for each result, or null.
  template <typename T>
  static void accumulate(Accumulation kind, const ReduceSizes& sizes, const T* x, const Wide<T>* shift, Wide<T>* values);
  template <typename Y, typename V>
  static void finish(std::int64_t count, const FinishReduction<Y, V>& body);
  template <typename T>
  static void scale(std::int64_t count, const GradientScale<T>& body);
  template <typename T>
  static void gradient(const ReductionGradient<T>& body);
  template <typename T>
  static void product_gradient(const ReduceSizes& sizes, const T* x, const double* dy, T* dx, bool accumulate);
};

namespace detail {

// x with its dims in the plan's order; x itself if they are in this order already.
template <typename T, typename D>
Tensor<T, D> in_order(const ReducePlan& plan, const Tensor<T, D>& x) {
  if (plan.order.empty()) return x;
  const Movement movement = permuted(x.shape(), plan.order);
  Tensor<T, D> y(movement.to);
  move_elements(movement, x, y);
  return y;
}

template <typename T, typename D>
Tensor<Wide<T>, D> accumulated_values(Accumulation kind, const ReduceSizes& sizes, const Tensor<T, D>& x,
                                      const Tensor<Wide<T>, D>& shift = {}) {
  Tensor<Wide<T>, D> values({sizes.results()});
  Reductions<D>::accumulate(kind, sizes, x.data(), shift.data(), values.data());
  return values;
}

template <typename V, typename D>
Tensor<double, D> finished(Finish kind, const Tensor<V, D>& values, double divisor = 1) {
  Tensor<double, D> result({values.numel()});
  Reductions<D>::finish(values.numel(), FinishReduction<double, V>{kind, values.data(), nullptr, divisor, result.data()});
  return result;
}

template <typename T, typename D>
Tensor<double, D> means(const ReduceSizes& sizes, const Tensor<T, D>& x) {
  return finished(Finish::quotient, accumulated_values(Accumulation::sum, sizes, x), static_cast<double>(sizes.reduced));
}

inline double freedom(const ReductionOptions& options, const ReduceSizes& sizes) {
  return std::max(0.0, static_cast<double>(sizes.reduced) - options.correction);
}

// The accumulated values, and how y is computed from them.
template <typename T, typename D>
struct Accumulated {
  Tensor<Wide<T>, D> values;
  Finish finish = Finish::itself;
  double divisor = 1;
};

template <typename T, typename D>
Accumulated<T, D> accumulate(const ReductionOptions& options, const ReduceSizes& sizes, const Tensor<T, D>& x) {
  const auto plain = [&](Accumulation kind) { return Accumulated<T, D>{accumulated_values(kind, sizes, x)}; };
  switch (options.kind) {
    case Reduction::sum: return plain(Accumulation::sum);
    case Reduction::max: return plain(Accumulation::maximum);
    case Reduction::min: return plain(Accumulation::minimum);
    default: break;
  }
  if constexpr (!std::is_integral_v<T>) {
    switch (options.kind) {
      case Reduction::mean: return {plain(Accumulation::sum).values, Finish::quotient, static_cast<double>(sizes.reduced)};
      case Reduction::prod: return plain(Accumulation::product);
      case Reduction::norm1: return plain(Accumulation::magnitudes);
      case Reduction::norm2: return {plain(Accumulation::squares).values, Finish::root};
      case Reduction::norm_inf: return plain(Accumulation::largest_magnitude);
      case Reduction::var:
      case Reduction::stddev:
        return {accumulated_values(Accumulation::deviations, sizes, x, means(sizes, x)),
                options.kind == Reduction::var ? Finish::quotient : Finish::root, freedom(options, sizes)};
      default: break;
    }
  }
  require(false, "{}: integers only have sum, max and min", operation_name(options.kind));
  return {};
}

inline bool needs_element(Reduction kind) {
  return kind == Reduction::max || kind == Reduction::min || kind == Reduction::norm_inf;
}

}  // namespace detail

template <typename T, typename D>
void reduce(const ReductionOptions& options, const Tensor<T, D>& x, Tensor<SumOf<T>, D>& y) {
  const std::string_view op = operation_name(options.kind);
  require_defined(op, "x", x);
  const ReducePlan plan = reduce_plan(op, x.shape(), options.dims);
  require_count(op, "y", y, plan.sizes.results());
  if (y.numel() == 0) return;
  require(plan.sizes.reduced > 0 || !detail::needs_element(options.kind),
          "{}: x has shape {}, which has no element to choose from: a dim that is reduced is 0", op, x.shape());
  const auto accumulated = detail::accumulate(options, plan.sizes, detail::in_order(plan, x));
  Reductions<D>::finish(y.numel(), FinishReduction<SumOf<T>, Wide<T>>{accumulated.finish, accumulated.values.data(), nullptr,
                                                                      accumulated.divisor, y.data()});
}

namespace detail {

// The gradient of one reduction, with x in the plan's order.
template <typename T, typename D>
class ReductionBackward {
 public:
  ReductionBackward(const ReductionOptions& options, const ReduceSizes& sizes, Tensor<T, D> x, const Tensor<T, D>& y,
                    const Tensor<T, D>& dy)
      : options_(options), sizes_(sizes), x_(std::move(x)), y_(y), dy_(dy) {}

  void write(Tensor<T, D>& dx, bool accumulate) const {
    const double divisor = freedom(options_, sizes_);
    const auto to = [&](Slope slope, const Tensor<double, D>& scale, const Tensor<double, D>& shift = {}) {
      Reductions<D>::gradient(
          ReductionGradient<T>{slope, sizes_, x_.data(), scale.data(), shift.data(), dx.data(), accumulate});
    };
    switch (options_.kind) {
      case Reduction::sum: return to(Slope::one, scale());
      case Reduction::mean: return to(Slope::one, scale(1 / static_cast<double>(sizes_.reduced)));
      case Reduction::prod: return Reductions<D>::product_gradient(sizes_, x_.data(), scale().data(), dx.data(), accumulate);
      case Reduction::max:
      case Reduction::min: return to(Slope::equal, shared(Accumulation::equals), results());
      case Reduction::norm_inf: return to(Slope::equal_magnitude, shared(Accumulation::equal_magnitudes), results());
      case Reduction::var: return to(Slope::deviation, scale(2 / divisor), means(sizes_, x_));
      case Reduction::stddev: return to(Slope::deviation, over_results(1 / divisor), means(sizes_, x_));
      case Reduction::norm1: return to(Slope::sign, scale());
      case Reduction::norm2: return to(Slope::itself, over_results(1));
    }
  }

 private:
  Tensor<double, D> scaled(Scaling kind, double factor, const Tensor<double, D>& by) const {
    Tensor<double, D> result({sizes_.results()});
    Reductions<D>::scale(result.numel(), GradientScale<T>{kind, factor, dy_.data(), by.data(), result.data()});
    return result;
  }
  Tensor<double, D> scale(double factor = 1) const { return scaled(Scaling::times, factor, {}); }
  Tensor<double, D> results() const { return finished(Finish::itself, y_); }

  // For square roots: dy / result, or 0 where the result is 0.
  Tensor<double, D> over_results(double factor) const { return scaled(Scaling::quotient_or_zero, factor, results()); }

  // Elements with the same value share the gradient.
  Tensor<double, D> shared(Accumulation count) const {
    return scaled(Scaling::quotient, 1, accumulated_values(count, sizes_, x_, results()));
  }

  const ReductionOptions& options_;
  ReduceSizes sizes_;
  Tensor<T, D> x_;
  const Tensor<T, D>& y_;
  const Tensor<T, D>& dy_;
};

inline bool reads_elements(Reduction kind) { return kind != Reduction::sum && kind != Reduction::mean; }

// Calls write(dx, accumulate) with a dx in the plan's order of dims.
template <typename T, typename D>
void write_in_order(const ReducePlan& plan, Tensor<T, D>& dx, bool accumulate, const auto& write) {
  if (plan.order.empty()) return write(dx, accumulate);
  const Movement movement = permuted(dx.shape(), plan.order);
  Tensor<T, D> in_order(movement.to);
  write(in_order, false);
  move_gradient(movement, in_order, dx, accumulate);
}

}  // namespace detail

template <typename T, typename D>
void reduce_backward(const ReductionOptions& options, const Tensor<T, D>& x, const Tensor<T, D>& y, const Tensor<T, D>& dy,
                     Tensor<T, D>& dx, bool accumulate) {
  const std::string_view op = operation_name(options.kind);
  require_defined(op, "dx", dx);
  const ReducePlan plan = reduce_plan(op, dx.shape(), options.dims);
  require_count(op, "dy", dy, plan.sizes.results());
  if (detail::reads_elements(options.kind)) {
    require_shape(op, "x", x, dx.shape());
    require_count(op, "y", y, plan.sizes.results());
  }
  if (dx.numel() == 0) return;
  const bool reads = detail::reads_elements(options.kind);
  const detail::ReductionBackward<T, D> backward(options, plan.sizes, reads ? detail::in_order(plan, x) : Tensor<T, D>(), y,
                                                 dy);
  detail::write_in_order(plan, dx, accumulate, [&](Tensor<T, D>& to, bool adds) { backward.write(to, adds); });
}

// Two numbers for each result: a log-sum-exp would lose small differences if x is large.
template <typename T, typename D>
void logsumexp(const Dims& dims, const Tensor<T, D>& x, Tensor<T, D>& y, Tensor<double, D>& exponentials) {
  require_defined("logsumexp", "x", x);
  const ReducePlan plan = reduce_plan("logsumexp", x.shape(), dims);
  const std::int64_t results = plan.sizes.results();
  require_count("logsumexp", "y", y, results);
  require_count("logsumexp", "exponentials", exponentials, 2 * results);
  if (results == 0) return;
  const Tensor<T, D> elements = detail::in_order(plan, x);
  const auto largest = detail::accumulated_values(Accumulation::maximum, plan.sizes, elements);
  double* const shift = exponentials.data();
  double* const sums = shift + results;
  Reductions<D>::finish(results, FinishReduction<double, double>{Finish::finite, largest.data(), nullptr, 1, shift});
  Reductions<D>::accumulate(Accumulation::exponentials, plan.sizes, elements.data(), shift, sums);
  Reductions<D>::finish(results, FinishReduction<T, double>{Finish::logarithm, sums, shift, 1, y.data()});
}

template <typename T, typename D>
void logsumexp_backward(const Dims& dims, const Tensor<T, D>& x, const Tensor<double, D>& exponentials, const Tensor<T, D>& dy,
                        Tensor<T, D>& dx, bool accumulate) {
  constexpr std::string_view op = "logsumexp_backward";
  require_defined(op, "dx", dx);
  const ReducePlan plan = reduce_plan(op, dx.shape(), dims);
  const std::int64_t results = plan.sizes.results();
  require_shape(op, "x", x, dx.shape());
  require_count(op, "dy", dy, results);
  require_count(op, "exponentials", exponentials, 2 * results);
  if (dx.numel() == 0) return;
  const Tensor<T, D> elements = detail::in_order(plan, x);
  const double* const shift = exponentials.data();
  const Tensor<double, D> scale({results});
  Reductions<D>::scale(results, GradientScale<T>{Scaling::quotient_or_zero, 1, dy.data(), shift + results, scale.data()});
  detail::write_in_order(plan, dx, accumulate, [&](Tensor<T, D>& to, bool adds) {
    Reductions<D>::gradient(
        ReductionGradient<T>{Slope::exponential, plan.sizes, elements.data(), scale.data(), shift, to.data(), adds});
  });
}

namespace detail {

template <typename T, typename D>
Tensor<T, D> reduced(const ReductionOptions& options, const Tensor<T, D>& x, bool keep_dims) {
  const std::string_view op = operation_name(options.kind);
  require_defined(op, "x", x);
  Tensor<SumOf<T>, D> y(reduced_shape(op, x.shape(), options.dims, keep_dims));
  reduce(options, x, y);
  if constexpr (std::is_same_v<T, SumOf<T>>) {
    return y;
  } else {
    Tensor<T, D> narrow(y.shape());
    Reductions<D>::finish(y.numel(), FinishReduction<T, SumOf<T>>{Finish::itself, y.data(), nullptr, 1, narrow.data()});
    return narrow;
  }
}

template <typename D>
Tensor<bool, D> truth_of(std::string_view op, Accumulation kind, const Tensor<bool, D>& x, const Dims& dims, bool keep_dims) {
  require_defined(op, "x", x);
  const ReducePlan plan = reduce_plan(op, x.shape(), dims);
  Tensor<bool, D> y(reduced_shape(op, x.shape(), dims, keep_dims));
  const auto values = accumulated_values(kind, plan.sizes, in_order(plan, x));
  Reductions<D>::finish(y.numel(), FinishReduction<bool, std::int64_t>{Finish::itself, values.data(), nullptr, 1, y.data()});
  return y;
}

}  // namespace detail
}  // namespace trireme::ops

namespace trireme {

template <typename T, typename D>
Tensor<SumOf<T>, D> sum(const Tensor<T, D>& x, const Dims& dims, bool keep_dims) {
  ops::require_defined("sum", "x", x);
  Tensor<SumOf<T>, D> y(ops::reduced_shape("sum", x.shape(), dims, keep_dims));
  ops::reduce({.kind = ops::Reduction::sum, .dims = dims}, x, y);
  return y;
}

template <typename T, typename D>
Tensor<T, D> max(const Tensor<T, D>& x, const Dims& dims, bool keep_dims) {
  return ops::detail::reduced({.kind = ops::Reduction::max, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Tensor<T, D> min(const Tensor<T, D>& x, const Dims& dims, bool keep_dims) {
  return ops::detail::reduced({.kind = ops::Reduction::min, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Tensor<T, D> mean(const Tensor<T, D>& x, const Dims& dims, bool keep_dims) {
  return ops::detail::reduced({.kind = ops::Reduction::mean, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Tensor<T, D> prod(const Tensor<T, D>& x, const Dims& dims, bool keep_dims) {
  return ops::detail::reduced({.kind = ops::Reduction::prod, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Tensor<T, D> logsumexp(const Tensor<T, D>& x, const Dims& dims, bool keep_dims) {
  ops::require_defined("logsumexp", "x", x);
  Tensor<T, D> y(ops::reduced_shape("logsumexp", x.shape(), dims, keep_dims));
  Tensor<double, D> exponentials({2, y.numel()});
  ops::logsumexp(dims, x, y, exponentials);
  return y;
}

template <typename T, typename D>
Tensor<T, D> var(const Tensor<T, D>& x, const Dims& dims, bool keep_dims, double correction) {
  return ops::detail::reduced({.kind = ops::Reduction::var, .dims = dims, .correction = correction}, x, keep_dims);
}

template <typename T, typename D>
Tensor<T, D> stddev(const Tensor<T, D>& x, const Dims& dims, bool keep_dims, double correction) {
  return ops::detail::reduced({.kind = ops::Reduction::stddev, .dims = dims, .correction = correction}, x, keep_dims);
}

template <typename T, typename D>
Tensor<T, D> norm(const Tensor<T, D>& x, double p, const Dims& dims, bool keep_dims) {
  return ops::detail::reduced({.kind = ops::norm_of(p), .dims = dims}, x, keep_dims);
}

template <typename D>
Tensor<bool, D> any(const Tensor<bool, D>& x, const Dims& dims, bool keep_dims) {
  return ops::detail::truth_of("any", ops::Accumulation::maximum, x, dims, keep_dims);
}

template <typename D>
Tensor<bool, D> all(const Tensor<bool, D>& x, const Dims& dims, bool keep_dims) {
  return ops::detail::truth_of("all", ops::Accumulation::minimum, x, dims, keep_dims);
}

}  // namespace trireme
