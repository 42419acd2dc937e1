#include "precision/each_policy.hpp"
#include "trireme/models/generate-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P)                                                                            \
  template std::vector<std::int32_t> generate(const Gpt<P, TRIREME_DEVICE>&, std::vector<std::int32_t>,   \
                                              const GenerateOptions&);                                    \
  template std::vector<std::int32_t> generate(const Llama<P, TRIREME_DEVICE>&, std::vector<std::int32_t>, \
                                              const GenerateOptions&);
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE
#define TRIREME_INSTANTIATE(P)                                                                             \
  template std::vector<std::int32_t> generate(const LstmLm<P, TRIREME_DEVICE>&, std::vector<std::int32_t>, \
                                              const GenerateOptions&);
TRIREME_EACH_UNMIXED_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
