#pragma once

#include <atomic>
#include <exception>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Carries what the threads of a parallel region throw out of it, where it would end the process: the first, whose thread leaves
// its own work undone.
//
//   FirstException thrown;
//   #pragma omp parallel for
//   for (...) thrown.guard([&] { ... });
//   thrown.rethrow();
class FirstException {
 public:
  template <typename Action>
  void guard(const Action& action) noexcept {
    try {
      action();
    } catch (...) {
      if (!is_set_.test_and_set()) exception_ = std::current_exception();
    }
  }

  void rethrow() const {  // behind the region
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic_flag is_set_;
  std::exception_ptr exception_;
};

}  // namespace trireme
