#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/monitor/snapshot.hpp"

namespace trireme::monitor {

// A text file that lines are added to. A failed write is an Error{io} that names it, and leaves no part of a line behind.
class MetricsFile {
 public:
  // Begins with these lines, and keeps the file open.
  MetricsFile(std::filesystem::path path, const std::vector<std::string>& lines);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void add(std::string_view line);
  void replace_last(std::string_view line);  // of a device, which keeps all that was written: adds it
  // All lines anew. After an Error the file is as it was.
  void replace(const std::vector<std::string>& lines);

 private:
  void open(int flags);
  void write(std::string_view text);
  std::optional<std::int64_t> size() const;  // nothing: it is no file but a device
  [[noreturn]] void refuse(const char* what, int error_number) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t last_line_ = 0;  // where it begins
};

// What a line of a file says of a step.
struct Row {
  struct Cell {
    std::string name;
    std::string text;
    bool rises = false;  // of a counter: what two snapshots tell of a step is added up
  };
  std::int64_t step = 0;
  std::vector<Cell> cells = {};
};

// Of the metrics that changed; `text_of` gives what stands for a metric.
template <typename TextOf>
Row row_of(const Snapshot& snapshot, const TextOf& text_of) {
  Row row{.step = snapshot.step};
  for (const Metric& metric : snapshot.metrics) {
    if (metric.changed)
      row.cells.push_back({.name = metric.name, .text = text_of(metric), .rises = metric.kind == MetricKind::counter});
  }
  return row;
}

Row joined(Row before, const Row& more);  // of the same step

// Error{invalid_argument} where the first line of a file is none of metrics: it is another's, and not to be overwritten.
void require_metrics(const std::filesystem::path& path, bool (*is_own)(std::string_view first_line));

std::vector<std::string> lines_of(
    const std::filesystem::path& path);  // none where there is no file; without an unfinished last line

// The whole number with which the text begins.
std::optional<std::int64_t> number_at_start(std::string_view text);

std::string to_text(double value, std::string_view not_finite);  // the shortest that reads back to the same double

}  // namespace trireme::monitor
