#include "precision/each_policy.hpp"
#include "trireme/optim/sharpness_aware-inl.hpp"

namespace trireme::optim {

#define TRIREME_INSTANTIATE(P) template class SharpnessAware<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
