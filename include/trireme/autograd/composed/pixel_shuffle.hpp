#pragma once

#include <cstdint>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Channels become pixels (Shi et al. 2016, arXiv 1609.05158): [batch, height, width, channels * factor^2] -> [batch, height *
// factor, width * factor, channels]. As in torch, the channels of one pixel of the result lie factor^2 apart in x.
template <typename T, typename D>
Variable<T, D> pixel_shuffle(const Variable<T, D>& x, std::int64_t factor) {
  require_operands("pixel_shuffle", x);
  const Shape& shape = x.shape();
  require(factor > 0 && shape.size() == 4 && shape[3] % (factor * factor) == 0,
          "pixel_shuffle: x {} needs [batch, height, width, channels] with channels divisible by {}^2", shape, factor);
  const std::int64_t channels = shape[3] / (factor * factor);
  const auto parts = reshape(x, {shape[0], shape[1], shape[2], channels, factor, factor});
  return reshape(permute(parts, {0, 1, 4, 2, 5, 3}), {shape[0], shape[1] * factor, shape[2] * factor, channels});
}

// The inverse: [batch, height * factor, width * factor, channels] -> [batch, height, width, channels * factor^2].
template <typename T, typename D>
Variable<T, D> pixel_unshuffle(const Variable<T, D>& x, std::int64_t factor) {
  require_operands("pixel_unshuffle", x);
  const Shape& shape = x.shape();
  require(factor > 0 && shape.size() == 4 && shape[1] % factor == 0 && shape[2] % factor == 0,
          "pixel_unshuffle: x {} needs [batch, height, width, channels] with height and width divisible by {}", shape, factor);
  const auto parts = reshape(x, {shape[0], shape[1] / factor, factor, shape[2] / factor, factor, shape[3]});
  return reshape(permute(parts, {0, 1, 3, 5, 2, 4}),
                 {shape[0], shape[1] / factor, shape[2] / factor, shape[3] * factor * factor});
}

}  // namespace trireme
