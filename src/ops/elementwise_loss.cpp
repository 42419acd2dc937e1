#include "trireme/ops/elementwise_loss.hpp"

#include "ops/block_sums.hpp"
#include "ops/check.hpp"
#include "ops/kernels/elementwise_loss.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {

template <typename T, typename D>
double elementwise_loss(ElementwiseLoss kind, const Tensor<T, D>& x, const Tensor<T, D>& target, double positive_weight) {
  require_shape("elementwise_loss", "target", target.shape(), x.shape());
  const auto& kernels = elementwise_loss_kernels().of<T>();
  return combine_blocks<double>(
      x.numel(),
      [&](std::int64_t first, std::int64_t count) {
        return kernels.sum(kind, x.data() + first, target.data() + first, static_cast<T>(positive_weight), count);
      },
      std::plus<>());
}

template <typename T, typename D>
void elementwise_loss_backward(ElementwiseLoss kind, const Tensor<T, D>& x, const Tensor<T, D>& target, T scale,
                               Tensor<T, D>& dx, bool accumulate, double positive_weight) {
  require_shape("elementwise_loss_backward", "target", target.shape(), x.shape());
  require_shape("elementwise_loss_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = elementwise_loss_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.backward(kind, x.data() + begin, target.data() + begin, static_cast<T>(positive_weight), scale, dx.data() + begin,
                     end - begin, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                               \
  template double elementwise_loss(ElementwiseLoss, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, double);                   \
  template void elementwise_loss_backward(ElementwiseLoss, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, T, Tensor<T, Cpu>&, \
                                          bool, double);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
