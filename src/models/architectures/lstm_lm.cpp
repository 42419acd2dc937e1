#include "precision/each_policy.hpp"
#include "trireme/models/architectures/generate-inl.hpp"
#include "trireme/models/architectures/lstm_lm-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P)              \
  template class LstmLm<P, TRIREME_DEVICE>; \
  template TokenText generate(const LstmLm<P, TRIREME_DEVICE>&, TokenText, const GenerateOptions&);
TRIREME_EACH_UNMIXED_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
