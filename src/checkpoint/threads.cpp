#include "checkpoint/threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace trireme::checkpoint {

void run_on_threads(int threads, std::size_t count, const std::function<void(std::size_t index, std::size_t thread)>& action) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr failure;
  const auto work = [&](std::size_t thread) {
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        action(index, thread);
      } catch (...) {
        const std::lock_guard lock(mutex);
        next = count;
        if (index < failed) failure = std::current_exception();
        failed = std::min(failed, index);
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t wanted = std::min(static_cast<std::size_t>(threads), count);
    for (std::size_t thread = 1; thread < wanted; ++thread) others.emplace_back(work, thread);
    work(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trireme::checkpoint
