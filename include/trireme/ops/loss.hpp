#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

inline constexpr std::int32_t ignored_target = -100;

struct CrossEntropyResult {
  double sum = 0;         // of the losses of kept targets
  std::int64_t kept = 0;  // targets that are not ignored_target
};

// Softmax cross-entropy of logits[rows, classes] against class numbers targets[rows]. log_sum_exp: [rows], kept for the
// backward pass. A target that is neither a class nor ignored_target is an error that names its row. Computed in float for
// bfloat16 and float16 logits.
template <typename T, typename D>
CrossEntropyResult cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                 Tensor<Accumulate<T>, D>& log_sum_exp);

// dlogits = scale * (softmax(logits) - one hot), 0 in ignored rows; dlogits may be logits.
template <typename T, typename D>
void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                            const Tensor<Accumulate<T>, D>& log_sum_exp, Accumulate<T> scale, Tensor<T, D>& dlogits);

}  // namespace trireme::ops
