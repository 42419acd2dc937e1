#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/rotary_scaling.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct RotaryOptions {
  std::int64_t size = 0;            // of a head, even
  std::int64_t heads = 0;           // number of heads that are rotated, from the first column on
  std::int64_t first_position = 0;  // position of row 0 of each sequence: the number of tokens in the cache
  double base = 10000;
  RotaryScaling scaling = {};
};

// Rotary positions (Su et al. 2021, arXiv 2104.09864) in packed x: [batch, time, width]. Elements j and j + size / 2 of a head
// are rotated by the angle position / base^(2 j / size), changed by `scaling`. Angles are rounded to float, as in Hugging Face
// transformers; this rounding matters at high positions. Columns after the heads are copied. y may be x. document_starts:
// [batch, time], for each row the index of its document's first row, at most the row's own index. Positions count from that
// first row. If document_starts is undefined, positions count from the start of the sequence.
template <typename T, typename D>
TRIREME_EXPORT void rotary(const Tensor<T, D>& x, const RotaryOptions& options, Tensor<T, D>& y,
                           const Tensor<std::int32_t, D>& document_starts = {});

// The size / 2 angles by which elements j and j + size / 2 of a head are rotated from one position to the next, with `scaling`.
TRIREME_EXPORT std::vector<float> rotary_frequencies(const RotaryOptions& options);

// Rotates by the negative angles, with the same attention_factor. dx may be dy.
template <typename T, typename D>
TRIREME_EXPORT void rotary_backward(const Tensor<T, D>& dy, const RotaryOptions& options, Tensor<T, D>& dx,
                                    const Tensor<std::int32_t, D>& document_starts = {});

}  // namespace ops
}  // namespace trireme
