#include "trireme/ops/elementwise_loss.hpp"

#include "ops/block_sums.hpp"
#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/elementwise_loss.hpp"

namespace trireme::ops {

template <typename T, typename D>
double elementwise_loss(ElementwiseLoss kind, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& target,
                        double positive_weight) {
  using A = Accumulate<T>;
  require_shape("elementwise_loss", "target", target.shape(), x.shape());
  const auto& kernels = elementwise_loss_kernels().of<A>();
  const auto weight = static_cast<A>(positive_weight);
  return combine_blocks<double>(
      x.numel(),
      [&](std::int64_t begin, std::int64_t count) {
        double total = 0;
        for_pieces<T>(begin, begin + count, [&](std::int64_t first, std::int64_t part) {
          total += kernels.sum(kind, Input<T>(x.data() + first, part).data(), target.data() + first, weight, part);
        });
        return total;
      },
      std::plus<>());
}

template <typename T, typename D>
void elementwise_loss_backward(ElementwiseLoss kind, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& target,
                               Accumulate<T> scale, Tensor<T, D>& dx, bool accumulate, double positive_weight) {
  using A = Accumulate<T>;
  require_shape("elementwise_loss_backward", "target", target.shape(), x.shape());
  require_shape("elementwise_loss_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = elementwise_loss_kernels().of<A>();
  const auto weight = static_cast<A>(positive_weight);
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x.data() + first, count);
    Output<T> to(dx.data() + first, count, accumulate);
    kernels.backward(kind, at.data(), target.data() + first, weight, scale, to.data(), count, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                         \
  template double elementwise_loss(ElementwiseLoss, const Tensor<T, Cpu>&, const Tensor<Accumulate<T>, Cpu>&, double); \
  template void elementwise_loss_backward(ElementwiseLoss, const Tensor<T, Cpu>&, const Tensor<Accumulate<T>, Cpu>&,   \
                                          Accumulate<T>, Tensor<T, Cpu>&, bool, double);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
