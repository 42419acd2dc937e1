#include "trireme/autograd/operations/reduce.hpp"

#include <limits>
#include <tuple>
#include <vector>

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/reduce/reductions.hpp"

namespace trireme {
namespace {

void describe_reduction(const ops::ReductionOptions& options, Attributes& to) {
  const auto dims = options.dims.numbers();
  to["dims"] = std::vector<std::int64_t>(dims.begin(), dims.end());
  if (options.kind == ops::Reduction::var || options.kind == ops::Reduction::stddev) to["correction"] = options.correction;
  if (options.kind == ops::Reduction::norm1) to["p"] = 1.0;
  if (options.kind == ops::Reduction::norm2) to["p"] = 2.0;
  if (options.kind == ops::Reduction::norm_inf) to["p"] = std::numeric_limits<double>::infinity();
}

// Reductions whose gradient does not depend on the elements.
struct SumOrMean {
  std::string_view name;
  ops::ReductionOptions options;
  void forward(const auto& x, auto& y) const { ops::reduce(options, x, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx) const {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::reduce_backward(options, {}, {}, dy, out, accumulate); });
  }
  void describe(Attributes& to) const { describe_reduction(options, to); }
};

struct Reduction {
  std::string_view name;
  ops::ReductionOptions options;
  void forward(const auto& x, auto& y) const { ops::reduce(options, x, y); }
  void backward(const auto& dy, const auto& x, const auto& y, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::reduce_backward(options, x, y, dy, out, accumulate); });
  }
  void describe(Attributes& to) const { describe_reduction(options, to); }
};

struct LogSumExp {
  static constexpr std::string_view name = "logsumexp";
  Dims dims;
  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, Tensor<T, D>& y, Tensor<double, D>& exponentials) const {
    ops::logsumexp(dims, x, y, exponentials);
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Tensor<T, D>& x, const Tensor<double, D>& exponentials,
                const Gradient<T, D>& dx) const {
    dx.contribute(
        [&](Tensor<T, D>& out, bool accumulate) { ops::logsumexp_backward(dims, x, exponentials, dy, out, accumulate); });
  }
  void describe(Attributes& to) const { describe_reduction({.dims = dims}, to); }
};

template <typename T, typename D>
auto result_of(const ops::ReductionOptions& options, const Variable<T, D>& x, bool keep_dims) {
  return Result<T, D>{ops::reduced_shape(ops::operation_name(options.kind), x.shape(), options.dims, keep_dims)};
}

template <typename T, typename D>
Variable<T, D> sum_or_mean(const ops::ReductionOptions& options, const Variable<T, D>& x, bool keep_dims) {
  return record(
      SumOrMean{ops::operation_name(options.kind), options}, [&] { return result_of(options, x, keep_dims); }, x);
}

template <typename T, typename D>
Variable<T, D> reduce(const ops::ReductionOptions& options, const Variable<T, D>& x, bool keep_dims) {
  return record(
      Reduction{ops::operation_name(options.kind), options}, [&] { return kept(result_of(options, x, keep_dims)); }, kept(x));
}

}  // namespace

template <typename T, typename D>
Variable<T, D> sum(const Variable<T, D>& x, const Dims& dims, bool keep_dims) {
  return sum_or_mean({.kind = ops::Reduction::sum, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> mean(const Variable<T, D>& x, const Dims& dims, bool keep_dims) {
  return sum_or_mean({.kind = ops::Reduction::mean, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> prod(const Variable<T, D>& x, const Dims& dims, bool keep_dims) {
  return reduce({.kind = ops::Reduction::prod, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> max(const Variable<T, D>& x, const Dims& dims, bool keep_dims) {
  return reduce({.kind = ops::Reduction::max, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> min(const Variable<T, D>& x, const Dims& dims, bool keep_dims) {
  return reduce({.kind = ops::Reduction::min, .dims = dims}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> logsumexp(const Variable<T, D>& x, const Dims& dims, bool keep_dims) {
  const auto results = [&] {
    const Shape shape = ops::reduced_shape(LogSumExp::name, x.shape(), dims, keep_dims);
    return std::tuple(Result<T, D>{shape}, internal(Result<double, D>{{2, shape.numel()}}));
  };
  return record(LogSumExp{dims}, results, kept(x));
}

template <typename T, typename D>
Variable<T, D> var(const Variable<T, D>& x, const Dims& dims, bool keep_dims, double correction) {
  return reduce({.kind = ops::Reduction::var, .dims = dims, .correction = correction}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> stddev(const Variable<T, D>& x, const Dims& dims, bool keep_dims, double correction) {
  return reduce({.kind = ops::Reduction::stddev, .dims = dims, .correction = correction}, x, keep_dims);
}

template <typename T, typename D>
Variable<T, D> norm(const Variable<T, D>& x, double p, const Dims& dims, bool keep_dims) {
  return reduce({.kind = ops::norm_of(p), .dims = dims}, x, keep_dims);
}

#define TRIREME_OVERLOADS(T, D)                                                     \
  template Variable<T, D> sum(const Variable<T, D>&, const Dims&, bool);            \
  template Variable<T, D> mean(const Variable<T, D>&, const Dims&, bool);           \
  template Variable<T, D> prod(const Variable<T, D>&, const Dims&, bool);           \
  template Variable<T, D> max(const Variable<T, D>&, const Dims&, bool);            \
  template Variable<T, D> min(const Variable<T, D>&, const Dims&, bool);            \
  template Variable<T, D> logsumexp(const Variable<T, D>&, const Dims&, bool);      \
  template Variable<T, D> var(const Variable<T, D>&, const Dims&, bool, double);    \
  template Variable<T, D> stddev(const Variable<T, D>&, const Dims&, bool, double); \
  template Variable<T, D> norm(const Variable<T, D>&, double, const Dims&, bool);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

}  // namespace trireme
