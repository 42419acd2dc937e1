#include "precision/each_policy.hpp"
#include "trireme/optim/schedule_free_adamw-inl.hpp"

namespace trireme::optim {

#define TRIREME_INSTANTIATE(P) template class ScheduleFreeAdamW<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
