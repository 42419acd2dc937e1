#include "trireme/ops/loss.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/softmax.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

template <typename T>
void require_rows(std::string_view op, const Tensor<T, Cpu>& logits, const Tensor<std::int32_t, Cpu>& targets,
                  const Tensor<Accumulate<T>, Cpu>& log_sum_exp) {
  require(logits.shape().back() > 0, "{}: logits have shape {}; there must be a class", op, logits.shape());
  require_count(op, "targets", targets.shape(), logits.shape().rows());
  require_count(op, "log_sum_exp", log_sum_exp.shape(), logits.shape().rows());
}

}  // namespace

template <typename T, typename D>
CrossEntropyResult cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                 Tensor<Accumulate<T>, D>& log_sum_exp) {
  require_rows("cross_entropy", logits, targets, log_sum_exp);
  const std::int64_t rows = logits.shape().rows();
  const std::int64_t classes = logits.shape().back();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t target = targets.data()[row];
    require(target == ignored_target || (target >= 0 && target < classes),
            "cross_entropy: the target of row {} is {}, but must lie in [0, {}) or be {}", row, target, classes,
            ignored_target);
  }
  const auto& kernels = softmax_kernels().of<Accumulate<T>>();
  parallel_rows(rows, classes, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> floats(classes);
    for (std::int64_t row = begin; row < end; ++row) {
      log_sum_exp.data()[row] = kernels.log_sum_exp(floats.read(logits.data() + row * classes), classes);
    }
  });
  CrossEntropyResult result;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t target = targets.data()[row];
    if (target == ignored_target) continue;
    result.sum += static_cast<double>(log_sum_exp.data()[row]) -
                  static_cast<double>(Accumulate<T>(logits.data()[row * classes + target]));
    ++result.kept;
  }
  return result;
}

template <typename T, typename D>
void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                            const Tensor<Accumulate<T>, D>& log_sum_exp, Accumulate<T> scale, Tensor<T, D>& dlogits) {
  require_rows("cross_entropy_backward", logits, targets, log_sum_exp);
  require_shape("cross_entropy_backward", "dlogits", dlogits.shape(), logits.shape());
  const std::int64_t classes = logits.shape().back();
  const auto& kernels = softmax_kernels().of<Accumulate<T>>();
  parallel_rows(logits.shape().rows(), classes, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> inputs(classes);
    FloatRow<T> outputs(classes);
    for (std::int64_t row = begin; row < end; ++row) {
      T* dlogits_row = dlogits.data() + row * classes;
      Accumulate<T>* gradient = outputs.place(dlogits_row);
      const std::int32_t target = targets.data()[row];
      if (target == ignored_target) {
        std::fill_n(gradient, classes, Accumulate<T>(0));
      } else {
        kernels.softmax(inputs.read(logits.data() + row * classes), log_sum_exp.data()[row], scale, gradient, classes);
        gradient[target] -= scale;
      }
      outputs.write(dlogits_row);
    }
  });
}

#define TRIREME_INSTANTIATE(T)                                                                       \
  template CrossEntropyResult cross_entropy(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, \
                                            Tensor<Accumulate<T>, Cpu>&);                            \
  template void cross_entropy_backward(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&,      \
                                       const Tensor<Accumulate<T>, Cpu>&, Accumulate<T>, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
