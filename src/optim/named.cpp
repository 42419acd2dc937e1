#include "precision/each_policy.hpp"
#include "trireme/optim/named-inl.hpp"

namespace trireme::optim {

#ifndef TRIREME_FLOAT64
template std::vector<std::string> optimizer_names<TRIREME_DEVICE>();
#endif
#define TRIREME_INSTANTIATE(P) \
  template std::unique_ptr<Optimizer<P, TRIREME_DEVICE>> make_optimizer(const std::string&, Model&, const NamedOptions&);
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
