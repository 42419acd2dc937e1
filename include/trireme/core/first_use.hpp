#pragma once

#include <atomic>
#include <mutex>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Makes something on first use, once for all threads. Move a FirstUse only while no other thread uses it.
class FirstUse {
 public:
  FirstUse() = default;
  FirstUse(FirstUse&& other) noexcept : made_(other.made()) {}
  FirstUse& operator=(FirstUse&& other) noexcept {
    made_.store(other.made(), std::memory_order_release);
    return *this;
  }
  ~FirstUse() = default;

  bool made() const { return made_.load(std::memory_order_acquire); }

  // Calls make() unless make() has succeeded before. Returns whether this call made the thing. If make() throws, the next call
  // tries again.
  template <typename Make>
  bool make_once(const Make& make) {
    if (made()) return false;
    const std::lock_guard lock(mutex_);
    if (made()) return false;
    make();
    made_.store(true, std::memory_order_release);
    return true;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> made_ = false;
};

}  // namespace trireme
