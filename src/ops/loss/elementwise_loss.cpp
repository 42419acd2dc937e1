#include "ops/elementwise/floats.hpp"
#include "ops/loss/elementwise_loss_kernels.hpp"
#include "ops/loss/elementwise_loss_on.hpp"
#include "ops/reduce/block_sums.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
Scalar<double> ElementwiseLosses<Cpu>::sum(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t numel, const T* x,
                                           const Accumulate<T>* target) {
  const auto& kernels = elementwise_loss_kernels().of<Accumulate<T>>();
  return combine_blocks<double>(
      numel,
      [&](std::int64_t begin, std::int64_t count) {
        double total = 0;
        for_pieces<T>(begin, begin + count, [&](std::int64_t first, std::int64_t part) {
          total += kernels.sum(loss, Input<T>(x + first, part).data(), target + first, part);
        });
        return total;
      },
      std::plus<>());
}

template <>
template <typename T>
void ElementwiseLosses<Cpu>::backward(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t numel, const T* x,
                                      const Accumulate<T>* target, const ScalarArgument<Accumulate<T>>& scale, T* dx,
                                      bool accumulate) {
  const auto& kernels = elementwise_loss_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x + first, count);
    Output<T> to(dx + first, count, accumulate);
    kernels.backward(loss, at.data(), target + first, scale.get(), to.data(), count, accumulate);
  });
}

TRIREME_INSTANTIATE(FLOATS, elementwise_loss, Cpu)
TRIREME_INSTANTIATE(FLOATS, elementwise_loss_backward, Cpu)

}  // namespace trireme::ops
