#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trireme::comm {

// Sleep and wake across processes, in memory that they share; std::atomic::wait only reaches threads of one process.

// Sleeps while `word` holds `value`, at most `timeout`. May wake early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::microseconds timeout);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace trireme::comm
