#include "comm/nccl/watchdog.hpp"

namespace trireme::comm {

Watchdog::Watchdog(std::chrono::milliseconds interval)
    : interval_(interval), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void Watchdog::add(Watched& watched) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(&watched);
}

void Watchdog::remove(Watched& watched) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, &watched);
}

void Watchdog::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, interval_, [] { return false; });
    const auto now = std::chrono::steady_clock::now();
    for (Watched* watched : watched_) watched->look(now);
  }
}

}  // namespace trireme::comm
