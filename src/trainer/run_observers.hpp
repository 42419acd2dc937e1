#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/monitor/sink.hpp"

namespace trireme::trainer {

// The observers of a run on rank 0: the file of metrics, the program's sinks, and the terminal. An observer that throws does
// not end the run: its first error is printed, and it is called again at the next step.
class RunObservers {
 public:
  // Lines of text go to standard output if `to_standard_output`, otherwise to the log. If `has_metrics`, snapshots are kept for
  // the file of metrics until open_metrics().
  RunObservers(bool to_standard_output, bool has_metrics) : awaits_metrics_(has_metrics) {
    if (to_standard_output) people_.sink = monitor::terminal();
  }

  // Call it once: keeps the file's lines up to step `done` and adds the waiting snapshots. Error{invalid_argument} if the file
  // holds something else than metrics.
  void open_metrics(const std::string& path, std::int64_t done);
  void leave_metrics();  // drops the waiting snapshots; nothing is written to the file
  bool has_waiting() const { return !waiting_.empty(); }
  void watch(const monitor::TerminalOptions& options);  // also shows progress
  void add(std::unique_ptr<monitor::Sink> sink);
  bool none() const { return observers_.empty() && !shows_progress_ && !awaits_metrics_; }

  void note(std::string_view line);
  void step(const monitor::Snapshot& snapshot);    // after a step
  void report(const monitor::Snapshot& snapshot);  // between steps; the terminal gets a line by note() instead

 private:
  struct Observer {
    std::function<std::unique_ptr<monitor::Sink>()> make;  // makes the sink if it could not be made before
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
