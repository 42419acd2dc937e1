#include "ops/base/parallel.hpp"
#include "ops/update/adam_8bit_body.hpp"
#include "ops/update/adam_8bit_kernels.hpp"
#include "ops/update/adam_8bit_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Adam8bitPasses<Cpu>::update(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes) {
  const AdamUpdate<T> update(step);
  const Adam8bitKernels<T>& kernels = adam_8bit_kernels().of<T>();
  // No two threads share a cache line of the weights, the codes or the magnitudes.
  parallel_ranges(count, 16 * block_of_8bit, least_elements, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t block = begin / block_of_8bit;
    const Adam8bitPlanes<T> from{planes.gradient + begin,     planes.weight + begin,       planes.first_codes + begin,
                                 planes.second_codes + begin, planes.first_absmax + block, planes.second_absmax + block};
    kernels.update(end - begin, update, from, nullptr);
  });
}

template <>
template <typename T>
void Adam8bitPasses<Cpu>::measure(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, float* absmax) {
  adam_8bit_kernels().of<T>().measure(count, AdamUpdate<T>(step), planes, absmax);
}

template <>
template <typename T>
void Adam8bitPasses<Cpu>::update_part(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes,
                                      const float* absmax, std::int64_t parts) {
  const Absmax8bit largest(absmax, parts);
  const float pair[2] = {largest.first, largest.second};
  adam_8bit_kernels().of<T>().update(count, AdamUpdate<T>(step), planes, pair);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, adam_8bit, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, measure_adam_8bit, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, adam_8bit_part, Cpu)

}  // namespace trireme::ops
