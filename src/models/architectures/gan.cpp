#include "precision/each_policy.hpp"
#include "trireme/models/architectures/gan-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P)                        \
  template class MlpGenerator<P, TRIREME_DEVICE>;     \
  template class MlpDiscriminator<P, TRIREME_DEVICE>; \
  template class DcGenerator<P, TRIREME_DEVICE>;      \
  template class DcDiscriminator<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
