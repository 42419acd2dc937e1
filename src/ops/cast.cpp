#include "trireme/ops/cast.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/elementwise.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {

template <typename From, typename To, typename D>
void cast(const Tensor<From, D>& x, Tensor<To, D>& y, bool accumulate) {
  require_shape("cast", "y", y.shape(), x.shape());
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    const From* from = x.data() + begin;
    To* to = y.data() + begin;
    if (!accumulate) {
      if constexpr (is_half<From>) {
        widen(from, to, end - begin);
      } else {
        narrow(from, to, end - begin);
      }
      return;
    }
    for (std::int64_t first = 0; first < end - begin; first += piece_elements) {
      const std::int64_t count = std::min(piece_elements, end - begin - first);
      const Input<From> addend(from + first, count);
      Output<To> sum(to + first, count, true);
      elementwise_kernels().of<float>().add(sum.data(), addend.data(), sum.data(), count);
    }
  });
}

template void cast(const Tensor<float, Cpu>&, Tensor<bfloat16, Cpu>&, bool);
template void cast(const Tensor<float, Cpu>&, Tensor<float16, Cpu>&, bool);
template void cast(const Tensor<bfloat16, Cpu>&, Tensor<float, Cpu>&, bool);
template void cast(const Tensor<float16, Cpu>&, Tensor<float, Cpu>&, bool);

}  // namespace trireme::ops
