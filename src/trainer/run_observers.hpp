#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/monitor/sink.hpp"

namespace trireme::trainer {

// Who watches a run, on the rank that tells: the file of metrics, sinks of the program, and people at a terminal. None of them
// ends the run: what one throws is told once, and it is asked again at the next step.
class RunObservers {
 public:
  // Lines of text go to standard output, or to the log.
  explicit RunObservers(bool to_standard_output) {
    if (to_standard_output) people_.sink = monitor::terminal();
  }

  // Lines up to the step `done` stay. Error{invalid_argument} where the file holds something else than metrics.
  void open_metrics(const std::string& path, std::int64_t done);
  void watch(const monitor::TerminalOptions& options);  // people see the progress too
  void add(std::unique_ptr<monitor::Sink> sink);
  bool none() const { return observers_.empty() && !shows_progress_; }

  void note(std::string_view line);
  void step(const monitor::Snapshot& snapshot);    // of one that has ended
  void report(const monitor::Snapshot& snapshot);  // between steps: people have a line for it

 private:
  struct Observer {
    std::function<std::unique_ptr<monitor::Sink>()> make;  // where the sink is not there yet
    std::unique_ptr<monitor::Sink> sink;
    bool has_failed = false;
  };

  template <typename F>
  void attempt(Observer& observer, const F& f);

  std::vector<Observer> observers_;
  Observer people_;
  bool shows_progress_ = false;
};

}  // namespace trireme::trainer
