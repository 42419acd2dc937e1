#include "trireme/ops/loss.hpp"

#include <functional>
#include <numeric>

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/softmax.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

// What the options make of one row.
template <typename T>
class Rows {
 public:
  using A = Accumulate<T>;

  Rows(std::string_view op, const Tensor<T, Cpu>& logits, const Tensor<std::int32_t, Cpu>& targets,
       const Tensor<A, Cpu>& log_sum_exp, const CrossEntropyOptions<A, Cpu>& options)
      : logits_(logits), targets_(targets), log_sum_exp_(log_sum_exp), options_(options), classes_(logits.shape().back()) {
    require(classes_ > 0, "{}: logits have shape {}; there must be a class", op, logits.shape());
    require_count(op, "targets", targets.shape(), count());
    require_count(op, "log_sum_exp", log_sum_exp.shape(), count());
    require(options.label_smoothing >= 0 && options.label_smoothing <= 1, "{}: label_smoothing is {}, but must lie in [0, 1]",
            op, options.label_smoothing);
    if (weighted()) require_count(op, "class_weight", options.class_weight.shape(), classes_);
    const A* weights = options.class_weight.data();
    smooth_ = options.label_smoothing / static_cast<double>(classes_);
    smooth_mass_ = smooth_ * (weighted() ? std::accumulate(weights, weights + classes_, 0.0) : static_cast<double>(classes_));
  }

  std::int64_t count() const { return logits_.shape().rows(); }
  std::int64_t classes() const { return classes_; }
  bool ignored(std::int64_t row) const { return targets_.data()[row] == options_.ignore_index; }
  double weight(std::int64_t row) const {
    return weighted() ? static_cast<double>(options_.class_weight.data()[targets_.data()[row]]) : 1.0;
  }

  void check_targets() const {
    for (std::int64_t row = 0; row < count(); ++row) {
      const std::int32_t target = targets_.data()[row];
      require(ignored(row) || (target >= 0 && target < classes_),
              "cross_entropy: the target of row {} is {}, but must lie in [0, {}) or be {}", row, target, classes_,
              options_.ignore_index);
    }
  }

  double loss(std::int64_t row, FloatRow<T>& floats) const {
    const T* x = logits_.data() + row * classes_;
    const auto log_sum_exp = static_cast<double>(log_sum_exp_.data()[row]);
    const double of_target =
        (1 - options_.label_smoothing) * weight(row) * (log_sum_exp - static_cast<double>(A(x[targets_.data()[row]])));
    return smooth_ == 0 ? of_target : of_target + smooth_mass_ * log_sum_exp - smooth_ * weighted_sum(floats.read(x));
  }

  void gradient(std::int64_t row, A scale, T* place, FloatRow<T>& inputs, FloatRow<T>& outputs) const {
    A* gradient = outputs.place(place);
    if (ignored(row)) {
      std::fill_n(gradient, classes_, A(0));
    } else {
      fill_gradient(row, scale, inputs.read(logits_.data() + row * classes_), gradient);
    }
    outputs.write(place);
  }

 private:
  void fill_gradient(std::int64_t row, A scale, const A* x, A* gradient) const {
    const double of_target = (1 - options_.label_smoothing) * weight(row);
    softmax_kernels().of<A>().softmax(x, log_sum_exp_.data()[row], scale * static_cast<A>(of_target + smooth_mass_), gradient,
                                      classes_);
    gradient[targets_.data()[row]] -= scale * static_cast<A>(of_target);
    if (smooth_ == 0) return;
    const A share = scale * static_cast<A>(smooth_);
    for (std::int64_t j = 0; j < classes_; ++j) gradient[j] -= weighted() ? share * options_.class_weight.data()[j] : share;
  }

  bool weighted() const { return options_.class_weight.defined(); }
  double weighted_sum(const A* x) const {
    const A* weights = options_.class_weight.data();
    return weighted() ? std::inner_product(x, x + classes_, weights, 0.0) : std::accumulate(x, x + classes_, 0.0);
  }

  const Tensor<T, Cpu>& logits_;
  const Tensor<std::int32_t, Cpu>& targets_;
  const Tensor<A, Cpu>& log_sum_exp_;
  const CrossEntropyOptions<A, Cpu>& options_;
  std::int64_t classes_;
  double smooth_ = 0;       // of each class, times its weight
  double smooth_mass_ = 0;  // of all classes
};

// dlogits with scale_of(row) as the upstream gradient of a row.
template <typename T, typename ScaleOf>
void backward(std::string_view op, const Rows<T>& rows, const Shape& logits, Tensor<T, Cpu>& dlogits, const ScaleOf& scale_of) {
  require_shape(op, "dlogits", dlogits.shape(), logits);
  parallel_rows(rows.count(), rows.classes(), [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> inputs(rows.classes());
    FloatRow<T> outputs(rows.classes());
    for (std::int64_t row = begin; row < end; ++row) {
      rows.gradient(row, scale_of(row), dlogits.data() + row * rows.classes(), inputs, outputs);
    }
  });
}

}  // namespace

template <typename T, typename D>
CrossEntropyResult cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                 Tensor<Accumulate<T>, D>& log_sum_exp, const CrossEntropyOptions<Accumulate<T>, D>& options) {
  const Rows<T> rows("cross_entropy", logits, targets, log_sum_exp, options);
  rows.check_targets();
  const auto& kernels = softmax_kernels().of<Accumulate<T>>();
  parallel_rows(rows.count(), rows.classes(), [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> floats(rows.classes());
    for (std::int64_t row = begin; row < end; ++row) {
      log_sum_exp.data()[row] = kernels.log_sum_exp(floats.read(logits.data() + row * rows.classes()), rows.classes());
    }
  });
  CrossEntropyResult result;
  FloatRow<T> floats(rows.classes());
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    if (rows.ignored(row)) continue;
    result.sum += rows.loss(row, floats);
    result.kept += rows.weight(row);
  }
  return result;
}

template <typename T, typename D>
void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                            const Tensor<Accumulate<T>, D>& log_sum_exp, Accumulate<T> scale, Tensor<T, D>& dlogits,
                            const CrossEntropyOptions<Accumulate<T>, D>& options) {
  constexpr std::string_view op = "cross_entropy_backward";
  const Rows<T> rows(op, logits, targets, log_sum_exp, options);
  backward(op, rows, logits.shape(), dlogits, [=](std::int64_t) { return scale; });
}

template <typename T, typename D>
void cross_entropy_rows(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                        const Tensor<Accumulate<T>, D>& log_sum_exp, Tensor<Accumulate<T>, D>& losses,
                        const CrossEntropyOptions<Accumulate<T>, D>& options) {
  const Rows<T> rows("cross_entropy_rows", logits, targets, log_sum_exp, options);
  rows.check_targets();
  require_count("cross_entropy_rows", "losses", losses.shape(), rows.count());
  FloatRow<T> floats(rows.classes());
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    losses.data()[row] = static_cast<Accumulate<T>>(rows.ignored(row) ? 0.0 : rows.loss(row, floats));
  }
}

template <typename T, typename D>
void cross_entropy_rows_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                 const Tensor<Accumulate<T>, D>& log_sum_exp, const Tensor<Accumulate<T>, D>& dlosses,
                                 Tensor<T, D>& dlogits, const CrossEntropyOptions<Accumulate<T>, D>& options) {
  constexpr std::string_view op = "cross_entropy_rows_backward";
  const Rows<T> rows(op, logits, targets, log_sum_exp, options);
  require_count(op, "dlosses", dlosses.shape(), rows.count());
  backward(op, rows, logits.shape(), dlogits, [&](std::int64_t row) { return dlosses.data()[row]; });
}

#define TRIREME_INSTANTIATE(T)                                                                                                 \
  template CrossEntropyResult cross_entropy(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&,                           \
                                            Tensor<Accumulate<T>, Cpu>&, const CrossEntropyOptions<Accumulate<T>, Cpu>&);      \
  template void cross_entropy_backward(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&,                                \
                                       const Tensor<Accumulate<T>, Cpu>&, Accumulate<T>, Tensor<T, Cpu>&,                      \
                                       const CrossEntropyOptions<Accumulate<T>, Cpu>&);                                        \
  template void cross_entropy_rows(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, const Tensor<Accumulate<T>, Cpu>&, \
                                   Tensor<Accumulate<T>, Cpu>&, const CrossEntropyOptions<Accumulate<T>, Cpu>&);               \
  template void cross_entropy_rows_backward(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&,                           \
                                            const Tensor<Accumulate<T>, Cpu>&, const Tensor<Accumulate<T>, Cpu>&,              \
                                            Tensor<T, Cpu>&, const CrossEntropyOptions<Accumulate<T>, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
