#include "precision/each_policy.hpp"
#include "trireme/models/architectures/bert-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P) template class Bert<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
