#include "trireme/optim/any_optimizer.hpp"

#include <atomic>

namespace trireme::optim {

AnyOptimizer::AnyOptimizer() {
  static std::atomic<std::uint64_t> serial{0};
  serial_ = ++serial;
}

}  // namespace trireme::optim
