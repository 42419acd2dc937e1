#pragma once

#include "ops/base/check.hpp"
#include "ops/elementwise/dropout_body.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"

// dropout of ops/elementwise/elementwise.hpp for any device: Dropouts<D> does the work.
namespace trireme::ops {

template <typename D>
struct Dropouts {
  template <typename T>
  static void dropout(const Dropout<T>& all);
};

template <typename T, typename D>
void dropout(const Tensor<T, D>& x, double probability, const RandomKey& key, Tensor<T, D>& y, bool accumulate) {
  require_defined("dropout", "x", x);
  require_shape("dropout", "y", y, x.shape());
  require(probability >= 0 && probability < 1, "dropout: the probability is {}, but must lie in [0, 1)", probability);
  Dropouts<D>::dropout(Dropout<T>{.x = x.data(),
                                  .factor = static_cast<Accumulate<T>>(1 / (1 - probability)),
                                  .numbers = {.seed = key.seed,
                                              .stream = stream_of_step(stream_of_call(key.stream, key.call), key.step),
                                              .first_index = key.first_index,
                                              .threshold = static_cast<std::uint32_t>(probability * 0x1p32)},
                                  .y = y.data(),
                                  .count = x.numel(),
                                  .accumulate = accumulate,
                                  .position = key.on_device,
                                  .per_sample = key.per_sample});
}

}  // namespace trireme::ops
