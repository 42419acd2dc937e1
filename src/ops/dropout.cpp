#include "ops/kernels/dropout.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "trireme/ops/elementwise.hpp"

namespace trireme::ops {

template <typename T, typename D>
void dropout(const Tensor<T, D>& x, double probability, const RandomKey& key, Tensor<T, D>& y, bool accumulate) {
  require_shape("dropout", "y", y.shape(), x.shape());
  require(probability >= 0 && probability < 1, "dropout: the probability is {}, but must lie in [0, 1)", probability);
  const auto& kernels = dropout_kernels().of<Accumulate<T>>();
  const auto factor = static_cast<Accumulate<T>>(1 / (1 - probability));
  const auto threshold = static_cast<std::uint32_t>(probability * 0x1p32);
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const DropoutNumbers numbers{.seed = key.seed,
                                 .stream = key.stream ^ (key.step * 0x9E3779B97F4A7C15),
                                 .first_index = key.first_index + static_cast<std::uint64_t>(first),
                                 .threshold = threshold};
    const Input<T> from(x.data() + first, count);
    Output<T> to(y.data() + first, count, accumulate);
    kernels.dropout(from.data(), factor, numbers, to.data(), count, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T) template void dropout(const Tensor<T, Cpu>&, double, const RandomKey&, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
