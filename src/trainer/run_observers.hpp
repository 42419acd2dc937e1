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
  // Of a run that has a file of metrics reports wait for it.
  RunObservers(bool to_standard_output, bool has_metrics) : awaits_metrics_(has_metrics) {
    if (to_standard_output) people_.sink = monitor::terminal();
  }

  // Once: of the file the lines up to the step `done` stay, and what has waited follows. Error{invalid_argument} where it holds
  // something else than metrics.
  void open_metrics(const std::string& path, std::int64_t done);
  void leave_metrics();  // nothing is written to the file
  bool has_waiting() const { return !waiting_.empty(); }
  void watch(const monitor::TerminalOptions& options);  // people see the progress too
  void add(std::unique_ptr<monitor::Sink> sink);
  bool none() const { return observers_.empty() && !shows_progress_ && !awaits_metrics_; }

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
  bool awaits_metrics_;
  std::vector<monitor::Snapshot> waiting_;
  Observer people_;
  bool shows_progress_ = false;
};

}  // namespace trireme::trainer
