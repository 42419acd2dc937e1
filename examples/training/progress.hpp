#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

// One line that is redrawn on a terminal; plain lines now and then elsewhere. Only rank 0 has one.
class Progress {
 public:
  Progress(std::int64_t steps, std::string unit, bool shown);  // unit: what is counted a second
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::int64_t step, std::string_view losses, double samples_per_second, std::uint64_t bytes_sent);
  void note(const std::string& line);  // a line of its own, above the bar

 private:
  std::string bar(std::int64_t done) const;
  double seconds_left(std::int64_t done) const;
  void erase();

  std::int64_t steps_;
  std::string unit_;
  bool shown_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = {};
};
