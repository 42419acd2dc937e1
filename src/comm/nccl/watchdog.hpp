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

// Looks at a rank's groups while the rank itself may wait for the GPU, where nothing else would end its wait.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::milliseconds interval);

  void add(Watched& watched);
  void remove(Watched& watched);  // afterwards it isn't looked at any more

 private:
  void watch(const std::stop_token& stop);

  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::vector<Watched*> watched_;
  std::jthread thread_;
};

}  // namespace trireme::comm
