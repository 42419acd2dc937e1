#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/loss/ignored_target.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

template <typename D = Cpu>
struct CrossEntropyResult {
  Scalar<double, D> sum = {};            // of the losses of counted targets
  Scalar<double, D> target_weight = {};  // targets that are not ignored, each counted by the weight of its class
};

template <typename T, typename D>
struct CrossEntropyOptions {
  std::int32_t ignore_index = ignored_target;
  // The target's share of the distribution that the softmax is compared with is 1 - label_smoothing; the rest is spread evenly
  // over all classes (Szegedy et al. 2016, arXiv 1512.00567).
  double label_smoothing = 0;
  Tensor<T, D> class_weight = {};  // [classes]; undefined: 1
};

// Softmax cross-entropy of logits[rows, classes] against class numbers targets[rows]. exponentials: [2, rows], the largest
// logit of each row and the sum of exp(logit - largest), kept for the backward pass. A target that is neither a class nor
// ignore_index is an error that names its row; on a GPU, for which the host does not wait, the losses and gradients of rows
// with such targets are NaN. Computed in float for bfloat16 and float16 logits.
template <typename T, typename D>
TRIREME_EXPORT CrossEntropyResult<D> cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                   Tensor<Accumulate<T>, D>& exponentials,
                                                   const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// The same where sums[3] become sum and target weight, and the first row with a wrong target, or -1.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_sums(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                       Tensor<Accumulate<T>, D>& exponentials, Tensor<double, D>& sums,
                                       const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// What cross_entropy_sums or cross_entropy_in_place left in `sums`: the host waits for a GPU's, and a wrong
// target is an error on every device.
template <typename D>
TRIREME_EXPORT CrossEntropyResult<> cross_entropy_result(const Tensor<double, D>& sums, const Tensor<std::int32_t, D>& targets,
                                                         std::int64_t classes, std::int32_t ignore_index = ignored_target);

// dlogits = scale * (softmax(logits) - one hot) without options, 0 in ignored rows; dlogits may be logits.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                           const Tensor<Accumulate<T>, D>& exponentials, const ScalarFor<T, D>& scale,
                                           Tensor<T, D>& dlogits, const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// Both passes in one, which is less traffic: sums as cross_entropy_sums, and logits become dlogits.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_in_place(Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, Accumulate<T> scale,
                                           Tensor<double, D>& sums, const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// The loss of each row: losses[rows], 0 in ignored rows; exponentials holds what cross_entropy left there.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_rows(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                       const Tensor<Accumulate<T>, D>& exponentials, Tensor<Accumulate<T>, D>& losses,
                                       const CrossEntropyOptions<Accumulate<T>, D>& options = {});
// As cross_entropy_backward, with an upstream gradient for each row: dlosses[rows].
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_rows_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                const Tensor<Accumulate<T>, D>& exponentials,
                                                const Tensor<Accumulate<T>, D>& dlosses, Tensor<T, D>& dlogits,
                                                const CrossEntropyOptions<Accumulate<T>, D>& options = {});

}  // namespace ops
}  // namespace trireme
