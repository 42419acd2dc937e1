#pragma once

#include <atomic>
#include <exception>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Keeps the first exception of the threads of an OpenMP parallel region, to rethrow the exception after the region. An
// exception that leaves the region would end the process. Actions of other threads that have begun go on; actions that come
// later are skipped.
//
//   FirstException thrown;
//   #pragma omp parallel for
//   for (...) thrown.guard([&] { ... });
//   thrown.rethrow();
class FirstException {
 public:
  template <typename Action>
  void guard(const Action& action) noexcept {
    if (is_set_.test(std::memory_order_relaxed)) return;
    try {
      action();
    } catch (...) {
      if (!is_set_.test_and_set()) exception_ = std::current_exception();
    }
  }

  void rethrow() const {  // call it after the region
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic_flag is_set_;
  std::exception_ptr exception_;
};

}  // namespace trireme
