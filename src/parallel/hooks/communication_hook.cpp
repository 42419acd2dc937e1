#include "trireme/parallel/hooks/communication_hook.hpp"

namespace trireme::parallel {

std::size_t GradientBucket::numel() const {
  std::int64_t count = 0;
  for (const NamedTensor& gradient : gradients_) count += gradient.values.numel();
  return static_cast<std::size_t>(count);
}

void CommunicationHook::prepare(std::span<const ParameterInfo>) {}

}  // namespace trireme::parallel
