#include "precision/each_policy.hpp"
#include "trireme/optim/adamw_8bit-inl.hpp"

namespace trireme::optim {

#define TRIREME_INSTANTIATE(P) template class AdamW8bit<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
