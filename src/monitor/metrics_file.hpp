#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/monitor/snapshot.hpp"

namespace trireme::monitor {

// A text file to which lines are added. A failed write throws an Error{io} with its name and leaves no part of a line in it.
class MetricsFile {
 public:
  // Opens the file and replaces its content by these lines.
  MetricsFile(std::filesystem::path path, const std::vector<std::string>& lines);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void add(std::string_view line);
  void replace_last(std::string_view line);  // a device can't be changed: adds the line there
  // Replaces all lines. After an Error the file has its old content.
  void replace(const std::vector<std::string>& lines);

 private:
  void open(int flags);
  void write(std::string_view text);
  std::optional<std::int64_t> size() const;  // nothing for a device
  [[noreturn]] void refuse(const char* what, int error_number) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t last_line_ = 0;  // the position of the last line
};

// A step's line in a file.
struct Row {
  struct Cell {
    std::string name;
    std::string text;
    bool rises = false;  // a counter: values of two snapshots of a step are added
  };
  std::int64_t step = 0;
  std::vector<Cell> cells = {};
};

// A row of the metrics that changed; text_of(metric) is the text of a cell.
template <typename TextOf>
Row row_of(const Snapshot& snapshot, const TextOf& text_of) {
  Row row{.step = snapshot.step};
  for (const Metric& metric : snapshot.metrics) {
    if (metric.changed)
      row.cells.push_back({.name = metric.name, .text = text_of(metric), .rises = metric.kind == MetricKind::counter});
  }
  return row;
}

Row joined(Row before, const Row& more);  // merges two rows of the same step

// Throws Error{invalid_argument} if the first line of a file does not hold metrics, so that other files are not overwritten.
void require_metrics(const std::filesystem::path& path, bool (*is_own)(std::string_view first_line));

std::vector<std::string> lines_of(
    const std::filesystem::path& path);  // without an unfinished last line; empty if there is no file

// The integer with which the text begins.
std::optional<std::int64_t> number_at_start(std::string_view text);

std::string to_text(double value, std::string_view not_finite);  // the shortest that reads back to the same double

}  // namespace trireme::monitor
