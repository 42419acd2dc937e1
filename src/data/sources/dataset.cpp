#include "trireme/data/sources/dataset.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

// Keeps the exception of the item with the smallest index. Items before it still run, since they may throw too.
class FirstFailedItem {
 public:
  void run(std::int64_t item, const std::function<void(std::int64_t)>& action) noexcept {
    if (item > failed_.load(std::memory_order_relaxed)) return;
    try {
      action(item);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (item > failed_.load(std::memory_order_relaxed)) return;
      failed_.store(item, std::memory_order_relaxed);
      exception_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic<std::int64_t> failed_ = std::numeric_limits<std::int64_t>::max();
  std::mutex mutex_;
  std::exception_ptr exception_;
};

}  // namespace

void for_each_item(std::int64_t count, int workers, const std::function<void(std::int64_t)>& action) {
  require(workers >= 0, "{} workers can read nothing; 0 means all threads of this rank", workers);
  const std::int64_t threads = std::min<std::int64_t>(workers == 0 ? omp_get_max_threads() : workers, count);
  if (threads <= 1) {
    for (std::int64_t item = 0; item < count; ++item) action(item);
    return;
  }
  FirstFailedItem failed;
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(threads))
  for (std::int64_t item = 0; item < count; ++item) failed.run(item, action);
  failed.rethrow();
}

}  // namespace trireme::data
