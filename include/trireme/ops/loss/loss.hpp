#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/loss/ignored_target.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

template <typename D = Cpu>
struct CrossEntropyResult {
  Scalar<double, D> sum = {};            // sum of the losses of counted targets
  Scalar<double, D> target_weight = {};  // sum of the class weights of all targets that are not ignored
};

template <typename T, typename D>
struct CrossEntropyOptions {
  std::int32_t ignore_index = ignored_target;
  // The target distribution gives 1 - label_smoothing to the target class, and spreads the rest evenly over all classes
  // (Szegedy et al. 2016, arXiv 1512.00567).
  double label_smoothing = 0;
  Tensor<T, D> class_weight = {};  // [classes]; undefined: 1
};

// Softmax cross-entropy of logits[rows, classes] against class numbers targets[rows]. exponentials: [2, rows], the largest
// logit of each row and the sum of exp(logit - largest), kept for the backward pass. A target that is neither a class nor
// ignore_index is an error that names its row. On a GPU, where the host does not wait, the losses and gradients of such rows
// are NaN instead. The computation is in float for bfloat16 and float16 logits.
template <typename T, typename D>
TRIREME_EXPORT CrossEntropyResult<D> cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                   Tensor<Accumulate<T>, D>& exponentials,
                                                   const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// As cross_entropy, but writes sums[3]: the sum of the losses, the target weight, and the first row with an invalid target, or
// -1 if there is none.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_sums(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                       Tensor<Accumulate<T>, D>& exponentials, Tensor<double, D>& sums,
                                       const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// Reads the `sums` of cross_entropy_sums or cross_entropy_in_place. Waits for the GPU; an invalid target is an error on every
// device.
template <typename D>
TRIREME_EXPORT CrossEntropyResult<> cross_entropy_result(const Tensor<double, D>& sums, const Tensor<std::int32_t, D>& targets,
                                                         std::int64_t classes, std::int32_t ignore_index = ignored_target);

// With default options dlogits = scale * (softmax(logits) - one_hot(targets)), and 0 in ignored rows. dlogits may be logits.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                           const Tensor<Accumulate<T>, D>& exponentials, const ScalarFor<T, D>& scale,
                                           Tensor<T, D>& dlogits, const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// Computes the forward and the backward pass together, with less memory traffic. Writes sums as cross_entropy_sums does, and
// overwrites logits with dlogits.
template <typename T, typename D>
TRIREME_EXPORT void cross_entropy_in_place(Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, Accumulate<T> scale,
                                           Tensor<double, D>& sums, const CrossEntropyOptions<Accumulate<T>, D>& options = {});

// The loss of each row: losses[rows], 0 in ignored rows; exponentials are as in cross_entropy.
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
