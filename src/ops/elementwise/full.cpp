#include "ops/elementwise/full_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T, typename S>
void Fills<Cpu>::each_index(std::int64_t count, const Full<T, S>& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

TRIREME_INSTANTIATE(FLOATS, full, double, Cpu)
TRIREME_INSTANCE(float, full, float, Cpu)
TRIREME_INSTANCE(bfloat16, full, bfloat16, Cpu)
TRIREME_INSTANCE(float16, full, float16, Cpu)

}  // namespace trireme::ops
