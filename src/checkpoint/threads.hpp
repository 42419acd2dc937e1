#pragma once

#include <cstddef>
#include <functional>

namespace trireme::checkpoint {

// Calls action(index, thread) for each index below `count`, in ascending order on `threads` threads; the calling thread is
// thread 0. If calls throw, starts no more and rethrows the exception of the lowest index.
void run_on_threads(int threads, std::size_t count, const std::function<void(std::size_t index, std::size_t thread)>& action);

}  // namespace trireme::checkpoint
