#include "ops/update/step_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename Body>
void Steps<Cpu>::each_index(std::int64_t count, const Body& body) {
  for (std::int64_t index = 0; index < count; ++index) body(index);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, add_to_totals, Cpu)
TRIREME_INSTANCE(Cpu, summarize_step)
TRIREME_INSTANCE(Cpu, copy_if)

}  // namespace trireme::ops
