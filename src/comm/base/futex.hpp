#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trireme::comm {

// Sleeps while `word` holds `value`, at most for `timeout`; may wake early. Works between processes in shared memory, while
// std::atomic::wait only works between threads of one process.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::microseconds timeout);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace trireme::comm
