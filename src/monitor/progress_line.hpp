#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/monitor/sink.hpp"

namespace trireme::monitor {

// The words of a progress line, and when one is due; told the time, so that tests need no clock.
class ProgressLine {
 public:
  using Time = std::chrono::duration<double>;  // since any moment

  explicit ProgressLine(const TerminalOptions& options) : options_(options) {}

  void add(const Snapshot& snapshot, Time now);

  // The line of what was added last, at most `width` characters; with a bar where it has room and the run's end is known.
  std::string on_terminal(int width) const;
  std::string plain() const;

  // Whether enough time has passed since the last one that was shown, or no step follows.
  bool due(bool on_terminal) const;
  void shown() { last_shown_ = now_; }

 private:
  struct Point {
    Time time;
    double share;
    double count;  // of the unit
  };

  std::string figures() const;
  std::optional<double> rate() const;  // of the unit a second
  std::optional<double> seconds_left() const;

  TerminalOptions options_;
  Snapshot snapshot_;
  Time now_ = {};
  std::optional<Time> last_shown_;
  std::deque<Point> window_;    // the last seconds, for the rate
  std::optional<Point> first_;  // after the first step, whose time says little of the others
};

}  // namespace trireme::monitor
