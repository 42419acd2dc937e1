#include "trireme/nn/staged/layer_costs.hpp"

#include <chrono>

#include "trireme/device/stream.hpp"

namespace trireme::nn::detail {

double seconds_of(const std::function<void()>& work, bool on_host) {
  const auto start = std::chrono::steady_clock::now();
  work();
  if (!on_host) device::current_stream().wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace trireme::nn::detail
