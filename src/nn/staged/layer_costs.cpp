#include "trireme/nn/staged/layer_costs.hpp"

#include "trireme/core/stopwatch.hpp"
#include "trireme/device/stream.hpp"

namespace trireme::nn::detail {

double seconds_of(const std::function<void()>& work, bool on_host) {
  const Stopwatch stopwatch;
  work();
  if (!on_host) device::current_stream().wait();
  return stopwatch.seconds();
}

}  // namespace trireme::nn::detail
