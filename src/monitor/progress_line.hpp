#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/monitor/sink.hpp"

namespace trireme::monitor {

// The text of a progress line, and when one is due. The caller passes the time, so that tests need no clock.
class ProgressLine {
 public:
  using Time = std::chrono::duration<double>;  // since any fixed moment

  explicit ProgressLine(const TerminalOptions& options) : options_(options) {}

  void add(const Snapshot& snapshot, Time now);

  // The line for the last snapshot. on_terminal() has at most `width` characters, and a bar if there is room for it.
  std::string on_terminal(int width) const;
  std::string plain() const;

  // Whether enough time has passed since the last shown line, or no step follows.
  bool due(bool on_terminal) const;
  void shown() { last_shown_ = now_; }

 private:
  struct Point {
    Time time;
    double share;
    double count;  // of the unit
  };

  std::string figures() const;
  std::optional<double> rate() const;  // of the unit per second
  std::optional<double> seconds_left() const;

  TerminalOptions options_;
  Snapshot snapshot_;
  Time now_ = {};
  std::optional<Time> last_shown_;
  std::deque<Point> window_;    // the last seconds, for the rate
  std::optional<Point> first_;  // after the first step, which takes longer than the others
};

}  // namespace trireme::monitor
