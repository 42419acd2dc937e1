#pragma once

#include <string_view>

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/rotary.hpp"

// The operations of ops/elementwise/rotary.hpp for any device: Rotary<D> does the work.
namespace trireme::ops {

struct RotarySizes {
  std::int64_t batch;
  std::int64_t time;
  std::int64_t width;
};

template <typename D>
struct Rotary {
  // `direction` is 1, or -1 for the negative angles. starts: [batch, time], or null.
  template <typename T>
  static void rotate(const RotarySizes& sizes, const RotaryOptions& options, double direction, const std::int32_t* starts,
                     const T* x, T* y);
};

template <typename T, typename D>
void rotate(std::string_view op, const Tensor<T, D>& x, const RotaryOptions& options, double direction,
            const Tensor<std::int32_t, D>& document_starts, Tensor<T, D>& y) {
  require_shape(op, "y", y, x.shape());
  require(options.size > 0 && options.size % 2 == 0, "{}: the head size is {}, but must be even", op, options.size);
  require(x.shape().size() == 3 && options.heads >= 0 && x.dim(2) >= options.heads * options.size,
          "{}: x of shape {} does not hold [batch, time, {} heads of {}]", op, x.shape(), options.heads, options.size);
  const RotaryScaling& scaling = options.scaling;
  const bool by_training = scaling.kind == RotaryScalingKind::llama3 || scaling.kind == RotaryScalingKind::yarn;
  require(options.base > 1 && scaling.factor >= 1 && (!by_training || scaling.trained_positions > 0),
          "{}: the base is {}, the factor {} and trained_positions {}, but need to be above 1, at least 1 and above 0", op,
          options.base, scaling.factor, scaling.trained_positions);
  const bool has_documents = document_starts.defined();
  if (has_documents) require_shape(op, "document_starts", document_starts.shape(), {x.dim(0), x.dim(1)});
  Rotary<D>::rotate({.batch = x.dim(0), .time = x.dim(1), .width = x.dim(2)}, options, direction,
                    has_documents ? document_starts.data() : nullptr, x.data(), y.data());
}

template <typename T, typename D>
void rotary(const Tensor<T, D>& x, const RotaryOptions& options, Tensor<T, D>& y,
            const Tensor<std::int32_t, D>& document_starts) {
  rotate("rotary", x, options, 1, document_starts, y);
}

template <typename T, typename D>
void rotary_backward(const Tensor<T, D>& dy, const RotaryOptions& options, Tensor<T, D>& dx,
                     const Tensor<std::int32_t, D>& document_starts) {
  rotate("rotary_backward", dy, options, -1, document_starts, dx);
}

}  // namespace trireme::ops
