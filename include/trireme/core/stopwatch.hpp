#pragma once

#include <chrono>
#include <utility>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Measures durations by a monotonic clock.
class Stopwatch {
 public:
  // Seconds since construction or restart().
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  // Returns seconds() and starts again from 0.
  double restart() {
    const Clock::time_point before = std::exchange(begin_, Clock::now());
    return std::chrono::duration<double>(begin_ - before).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace trireme
