#include "precision/each_policy.hpp"
#include "trireme/optim/lookahead-inl.hpp"

namespace trireme::optim {

#define TRIREME_INSTANTIATE(P) template class Lookahead<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
