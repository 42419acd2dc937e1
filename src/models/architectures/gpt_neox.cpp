#include "precision/each_policy.hpp"
#include "trireme/models/architectures/generate-inl.hpp"
#include "trireme/models/architectures/gpt_neox-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P)                                                                            \
  template class GptNeoX<P, TRIREME_DEVICE>;                                                              \
  template std::vector<TokenText> generate(const GptNeoX<P, TRIREME_DEVICE>&, std::span<const TokenText>, \
                                           const GenerateOptions&);
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
