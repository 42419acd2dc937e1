#include "ops/update/step_on.hpp"

namespace trireme::ops {

template <>
template <typename Body>
void Steps<Cpu>::each_index(std::int64_t count, const Body& body) {
  for (std::int64_t index = 0; index < count; ++index) body(index);
}

TRIREME_INSTANTIATE_STEP(Cpu);

}  // namespace trireme::ops
