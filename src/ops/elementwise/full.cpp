#include "ops/elementwise/full_on.hpp"

namespace trireme::ops {

template <>
template <typename T, typename S>
void Fills<Cpu>::each_index(std::int64_t count, const Full<T, S>& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

TRIREME_INSTANTIATE_FULL(Cpu);

}  // namespace trireme::ops
