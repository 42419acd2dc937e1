#pragma once

#include <atomic>
#include <mutex>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// What the first of the threads that need it makes, and the others find. It is moved while one thread alone knows it.
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

  // Whether this call has made it. What throws has made nothing, and the next call tries again.
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
