#include "precision/each_policy.hpp"
#include "trireme/models/generate-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P)                                                                                                 \
  template std::vector<TokenText> generate(const Gpt<P, TRIREME_DEVICE>&, std::span<const TokenText>, const GenerateOptions&); \
  template std::vector<TokenText> generate(const Llama<P, TRIREME_DEVICE>&, std::span<const TokenText>,                        \
                                           const GenerateOptions&);                                                            \
  template std::vector<TokenText> generate(const GptNeoX<P, TRIREME_DEVICE>&, std::span<const TokenText>,                      \
                                           const GenerateOptions&);
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE
#define TRIREME_INSTANTIATE(P) template TokenText generate(const LstmLm<P, TRIREME_DEVICE>&, TokenText, const GenerateOptions&);
TRIREME_EACH_UNMIXED_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
