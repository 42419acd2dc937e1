#include "ops/kernels/dropout.hpp"

#include "ops/check.hpp"
#include "ops/parallel.hpp"
#include "trireme/ops/elementwise.hpp"

namespace trireme::ops {

template <typename T, typename D>
void dropout(const Tensor<T, D>& x, double probability, const RandomKey& key, Tensor<T, D>& y, bool accumulate) {
  require_shape("dropout", "y", y.shape(), x.shape());
  require(probability >= 0 && probability < 1, "dropout: the probability is {}, but must lie in [0, 1)", probability);
  const auto& kernels = dropout_kernels().of<T>();
  const auto factor = static_cast<T>(1 / (1 - probability));
  const auto threshold = static_cast<std::uint32_t>(probability * 0x1p32);
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    const DropoutNumbers numbers{.seed = key.seed,
                                 .stream = key.stream ^ (key.step * 0x9E3779B97F4A7C15),
                                 .first_index = key.first_index + static_cast<std::uint64_t>(begin),
                                 .threshold = threshold};
    kernels.dropout(x.data() + begin, factor, numbers, y.data() + begin, end - begin, accumulate);
  });
}

template void dropout(const Tensor<float, Cpu>&, double, const RandomKey&, Tensor<float, Cpu>&, bool);
template void dropout(const Tensor<double, Cpu>&, double, const RandomKey&, Tensor<double, Cpu>&, bool);

}  // namespace trireme::ops
