#include "ops/base/parallel.hpp"
#include "ops/elementwise/cast_body.hpp"
#include "ops/elementwise/cast_on.hpp"
#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/elementwise/floats.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename From, typename To>
void Casts<Cpu>::cast(std::int64_t count, const From* x, To* y, bool accumulate) {
  parallel_elements(count, [&](std::int64_t begin, std::int64_t end) {
    const From* from = x + begin;
    To* to = y + begin;
    if constexpr (!is_half<From> && !is_half<To>) {
      const CastElements<From, To> element{from, to, accumulate};
      for (std::int64_t i = 0; i < end - begin; ++i) element(i);
    } else if (!accumulate) {
      if constexpr (is_half<From>) {
        widen(from, to, end - begin);
      } else {
        narrow(from, to, end - begin);
      }
    } else {
      for (std::int64_t first = 0; first < end - begin; first += piece_elements) {
        const std::int64_t part = std::min(piece_elements, end - begin - first);
        const Input<From> addend(from + first, part);
        Output<To> sum(to + first, part, true);
        elementwise_kernels().of<float>().add(sum.data(), addend.data(), sum.data(), part);
      }
    }
  });
}

TRIREME_INSTANCE(float, cast, bfloat16, Cpu)
TRIREME_INSTANCE(float, cast, float16, Cpu)
TRIREME_INSTANCE(float, cast, double, Cpu)
TRIREME_INSTANCE(double, cast, float, Cpu)
TRIREME_INSTANTIATE(HALVES, cast, float, Cpu)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cast, float, Cpu)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cast, double, Cpu)
TRIREME_INSTANCE(std::int32_t, cast, std::int64_t, Cpu)
TRIREME_INSTANCE(std::int64_t, cast, std::int32_t, Cpu)
TRIREME_INSTANCE(bool, cast, float, Cpu)
TRIREME_INSTANCE(bool, cast, double, Cpu)
TRIREME_INSTANCE(bool, cast, std::int32_t, Cpu)
TRIREME_INSTANCE(bool, cast, std::int64_t, Cpu)

}  // namespace trireme::ops
