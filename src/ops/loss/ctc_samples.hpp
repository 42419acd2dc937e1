#pragma once

#include <string_view>

#include "ops/base/check.hpp"
#include "ops/loss/ctc_body.hpp"
#include "trireme/ops/loss/ctc.hpp"

namespace trireme::ops {

// Checks the input of the operations of ops/loss/ctc.hpp, and returns it as pointers and sizes.
template <typename T, typename D>
CtcSamples<T> ctc_samples_of(std::string_view op, const CtcInput<T, D>& input) {
  require_defined(op, "log_probabilities", input.log_probabilities);
  require_defined(op, "targets", input.targets);
  const Shape& shape = input.log_probabilities.shape();
  require(shape.size() == 3, "{}: log_probabilities has shape {}, but needs [batch, time, classes]", op, shape);
  require(input.targets.shape().size() == 2 && input.targets.dim(0) == shape[0],
          "{}: targets has shape {}, but needs [{}, labels]", op, input.targets.shape(), shape[0]);
  require_shape(op, "input_lengths", input.input_lengths, {shape[0]});
  require_shape(op, "target_lengths", input.target_lengths, {shape[0]});
  require(input.options.blank >= 0 && input.options.blank < shape[2], "{}: the blank is {}, but must lie in [0, {})", op,
          input.options.blank, shape[2]);
  return {.log_probabilities = input.log_probabilities.data(),
          .targets = input.targets.data(),
          .input_lengths = input.input_lengths.data(),
          .target_lengths = input.target_lengths.data(),
          .batch = shape[0],
          .time = shape[1],
          .classes = shape[2],
          .labels = input.targets.dim(1),
          .blank = input.options.blank,
          .zero_infinity = input.options.zero_infinity,
          .per_label = input.options.per_label};
}

}  // namespace trireme::ops
