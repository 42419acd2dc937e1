#include "precision/each_policy.hpp"
#include "trireme/models/architectures/layer_costs-inl.hpp"

namespace trireme::models {

#define TRIREME_INSTANTIATE(P) \
  template std::vector<double> measured_layer_costs<P, TRIREME_DEVICE>(const GptOptions&, std::int64_t);
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
