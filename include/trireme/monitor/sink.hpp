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

// Where metrics go. One of your own:
//
//   struct Plot : monitor::Sink {
//     void write(const monitor::Snapshot& snapshot) override { plot.add(snapshot.step, snapshot.find("loss")->value); }
//   };
class Sink {
 public:
  virtual ~Sink() = default;

  // After each step, on the rank that has sinks. What a run reports between steps, as after its loop, comes as one more
  // snapshot of the step before. No observer ends a run: what it throws is told once, and the next snapshot comes all the same.
  virtual void write(const Snapshot& snapshot) = 0;

  // Something to tell, in words, without a newline at its end: that a checkpoint was saved, how a validation went.
  virtual void note(std::string_view) {}
};

// Of a file that is there the lines up to the step `done` stay: a run that goes on from a checkpoint repeats the others. With 0
// it begins anew. A further snapshot of the last step joins its line. A file that can't be opened or written is an Error{io}
// with its name, and holds whole lines alone; each write tries again.
struct FileOptions {
  std::int64_t done = 0;
};

// A JSON object a line: {"step":12,"loss":2.41,"sent_bytes":1048576}. Metrics that did not change are left out; of a counter
// it is the increase, of a histogram an object with count, sum, minimum, maximum, median and quantile_95. inf and nan are null.
std::unique_ptr<Sink> json_lines(const std::filesystem::path& path, const FileOptions& options = {});

// A row a step, with a column for each metric; a cell is empty where one did not change. A metric that comes later adds a
// column, for which the file is written anew. Of a histogram it is the median.
std::unique_ptr<Sink> csv(const std::filesystem::path& path, const FileOptions& options = {});

struct TerminalOptions {
  std::string unit = "samples";               // the name of the counter whose rate is shown
  std::vector<std::string> shown = {"loss"};  // gauges
  std::FILE* stream = stdout;
};

// Progress for people. On a terminal one line that is drawn again at most 10 times a second, never wider than the terminal;
// elsewhere a line now and then, at first every 10 seconds. Rates are those of the last seconds.
std::unique_ptr<Sink> terminal(const TerminalOptions& options = {});

}  // namespace monitor
}  // namespace trireme
