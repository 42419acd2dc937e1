#pragma once

#include <chrono>
#include <utility>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Measures durations on this rank, by a clock that is never set back.
class Stopwatch {
 public:
  // Since it was made, or restarted.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  // The same, and counts from now on.
  double restart() {
    const Clock::time_point before = std::exchange(begin_, Clock::now());
    return std::chrono::duration<double>(begin_ - before).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace trireme
