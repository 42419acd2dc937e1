#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace trireme::comm {

class Watched {
 public:
  virtual ~Watched() = default;
  virtual void look(std::chrono::steady_clock::time_point now) noexcept = 0;  // on the watchdog's thread
};

// Watches a rank's groups from its own thread, since the rank may be blocked in a wait for the GPU that nothing else would end.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::milliseconds interval);

  void add(Watched& watched);
  void remove(Watched& watched);  // look() is not called after this returns

 private:
  void watch(const std::stop_token& stop);

  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::vector<Watched*> watched_;
  std::jthread thread_;
};

}  // namespace trireme::comm
