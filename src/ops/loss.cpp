#include "trireme/ops/loss.hpp"

#include <vector>

#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {
namespace {

std::int64_t rows_per_part(std::int64_t classes) { return std::max<std::int64_t>(1, elements_per_part / classes); }

}  // namespace

template <typename T, typename D>
CrossEntropyResult cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                 Tensor<T, D>& log_sum_exp) {
  const std::int64_t rows = logits.shape().rows();
  const std::int64_t classes = logits.shape().back();
  require(targets.numel() == rows && log_sum_exp.numel() == rows, "cross_entropy: {} targets for logits of shape {}",
          targets.numel(), logits.shape().str());
  require(classes > 0, "cross_entropy: logits of shape {} have no class", logits.shape().str());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t target = targets.data()[row];
    require(target == ignored_target || (target >= 0 && target < classes),
            "cross_entropy: target {} in row {} is neither one of {} classes nor {} (ignored)", target, row, classes,
            ignored_target);
  }
  parallel_for(rows, rows_per_part(classes), [&](std::int64_t begin, std::int64_t end) {
    kernels::softmax<T>().log_sum_exp(logits.data() + begin * classes, end - begin, classes, log_sum_exp.data() + begin);
  });
  CrossEntropyResult result;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t target = targets.data()[row];
    if (target == ignored_target) continue;
    result.sum += static_cast<double>(log_sum_exp.data()[row]) - static_cast<double>(logits.data()[row * classes + target]);
    ++result.kept;
  }
  return result;
}

template <typename T, typename D>
void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const Tensor<T, D>& log_sum_exp,
                            T scale, Tensor<T, D>& dlogits) {
  const std::int64_t rows = logits.shape().rows();
  const std::int64_t classes = logits.shape().back();
  parallel_for(rows, rows_per_part(classes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* to = dlogits.data() + row * classes;
      const std::int32_t target = targets.data()[row];
      if (target == ignored_target) {
        std::fill_n(to, classes, T{});
        continue;
      }
      kernels::softmax<T>().normalized(logits.data() + row * classes, log_sum_exp.data()[row], scale, to, classes);
      to[target] -= scale;
    }
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                            \
  template CrossEntropyResult cross_entropy(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, Tensor<T, Cpu>&);    \
  template void cross_entropy_backward(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, T, \
                                       Tensor<T, Cpu>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
