#include "trireme/optim/optimizers.hpp"

#include "precision/each_policy.hpp"
#include "trireme/ops/update/each_optimizer.hpp"

namespace trireme::optim {

#define TRIREME_INSTANTIATE_OPTIMIZER(name, Name, P) template class Name<P, TRIREME_DEVICE>;
#define TRIREME_INSTANTIATE(P) TRIREME_EACH_OPTIMIZER(TRIREME_INSTANTIATE_OPTIMIZER, P)
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE
#undef TRIREME_INSTANTIATE_OPTIMIZER

}  // namespace trireme::optim
