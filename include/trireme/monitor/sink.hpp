#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/monitor/snapshot.hpp"

namespace trireme TRIREME_EXPORT {
namespace monitor {

// Receives metrics. You can write your own sink:
//
//   struct Plot : monitor::Sink {
//     void write(const monitor::Snapshot& snapshot) override { plot.add(snapshot.step, snapshot.find("loss")->value); }
//   };
class Sink {
 public:
  virtual ~Sink() = default;

  // Called after each step, on the rank that has sinks. Metrics that a run reports between steps, for example after its loop,
  // come as one more snapshot of the last step. An exception of write() does not end the run: the run prints the first
  // exception and continues to call write().
  virtual void write(const Snapshot& snapshot) = 0;

  // Called with a line of text without a newline, for example when a checkpoint was saved.
  virtual void note(std::string_view) {}
};

// An existing file keeps its lines up to step `done`, because a run that resumes from a checkpoint repeats later steps. If
// `done` is 0, the file is emptied. A further snapshot of the last step is merged into that step's line. A failure to open or
// write throws Error{io} with the name of the file. The file then has only whole lines, and the next write tries again.
struct FileOptions {
  std::int64_t done = 0;
};

// Writes a JSON object per line: {"step":12,"loss":2.41,"sent_bytes":1048576}. Metrics that did not change are left out. A
// counter is written as its increase, a histogram as an object with count, sum, minimum, maximum, median and quantile_95; inf
// and nan are null.
std::unique_ptr<Sink> json_lines(const std::filesystem::path& path, const FileOptions& options = {});

// Writes a row per step with a column for each metric; the cell of a metric that did not change is empty. A metric that appears
// later adds a column, and the file is rewritten. A counter is written as its increase, a histogram as its median.
std::unique_ptr<Sink> csv(const std::filesystem::path& path, const FileOptions& options = {});

struct TerminalOptions {
  std::string unit = "samples";               // the counter whose rate per second is shown
  std::vector<std::string> shown = {"loss"};  // the gauges that are shown
  std::FILE* stream = stdout;
};

// Shows progress. On a terminal, redraws one line at most 10 times a second, never wider than the terminal. Elsewhere, prints a
// line every 10 seconds, and every minute after the first 10 minutes. Rates are means over the last 10 seconds.
std::unique_ptr<Sink> terminal(const TerminalOptions& options = {});

}  // namespace monitor
}  // namespace trireme
