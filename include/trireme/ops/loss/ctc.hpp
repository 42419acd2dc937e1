#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct CtcOptions {
  std::int32_t blank = 0;      // the class that stands for no label
  bool zero_infinity = false;  // if an input is too short for its labels, loss and gradient are 0 instead of infinity and NaN
  bool per_label = true;       // each loss is divided by max(1, the number of its labels)
};

// Input of the functions below. Rows and labels beyond a sample's lengths are not read.
template <typename T, typename D>
struct CtcInput {
  Tensor<T, D> log_probabilities = {};          // [batch, time, classes]
  Tensor<std::int32_t, D> targets = {};         // [batch, labels]: class numbers, none of which is the blank
  Tensor<std::int32_t, D> input_lengths = {};   // [batch], at most time
  Tensor<std::int32_t, D> target_lengths = {};  // [batch], at most labels
  CtcOptions options = {};
};

// losses[batch]: -log of the probability of all alignments of a sample's labels to its rows. In an alignment, labels may be
// repeated and blanks may lie between labels (Graves et al. 2006, "Connectionist temporal classification"). alpha[batch, time,
// 2 * labels + 1]: logarithms of the forward recursion, kept for the backward pass; in double, because they are sums over the
// rows. A length or label outside its range is an error that names the sample. On a GPU, where the host does not wait, the
// sample's loss and gradient are NaN instead. T: float, double.
template <typename T, typename D>
TRIREME_EXPORT void ctc_loss(const CtcInput<T, D>& input, Tensor<T, D>& losses, Tensor<double, D>& alpha);

// dlog_probabilities = dlosses[batch] times the derivatives; 0 in rows beyond a sample's length.
template <typename T, typename D>
TRIREME_EXPORT void ctc_loss_backward(const CtcInput<T, D>& input, const Tensor<double, D>& alpha, const Tensor<T, D>& dlosses,
                                      Tensor<T, D>& dlog_probabilities);

}  // namespace ops
}  // namespace trireme
