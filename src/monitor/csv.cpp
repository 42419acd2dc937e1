#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/metrics_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/monitor/sink.hpp"

namespace trireme::monitor {

namespace {

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// The file's header and lines up to this step; empty if the file is started again.
std::vector<std::string> rows_up_to(std::int64_t step, const std::filesystem::path& path) {
  require_metrics(path, [](std::string_view header) { return cells_of(header).front() == "step"; });
  std::vector<std::string> lines = lines_of(path);
  if (lines.empty() || step == 0) return {};
  std::erase_if(lines, [&, columns = cells_of(lines.front()).size()](const std::string& line) {
    if (&line == &lines.front()) return false;
    const std::optional<std::int64_t> number = number_at_start(line);
    return !number || *number > step || cells_of(line).size() != columns;
  });
  return lines;
}

std::string text_of(const Metric& metric) {
  switch (metric.kind) {
    case MetricKind::counter: return to_text(metric.increase, "");
    case MetricKind::gauge: return fmt::format("{}", metric.value);
    case MetricKind::histogram: return to_text(metric.histogram.median, "");
  }
  return {};
}

class Csv final : public Sink {
 public:
  Csv(std::filesystem::path path, const std::vector<std::string>& lines) : path_(std::move(path)), file_(path_, lines) {
    if (lines.empty()) return;
    columns_ = cells_of(lines.front());
    if (lines.size() > 1) last_ = row_in(lines.back());
  }

  void write(const Snapshot& snapshot) override {
    add_columns(snapshot);
    Row row = row_of(snapshot, text_of);
    const bool joins = last_ && last_->step == row.step;
    if (joins) row = joined(*last_, row);
    joins ? file_.replace_last(line_of(row)) : file_.add(line_of(row));
    last_ = std::move(row);
  }

 private:
  static std::string line_of_cells(const std::vector<std::string>& cells) { return fmt::format("{}", fmt::join(cells, ",")); }

  std::string line_of(const Row& row) const {
    std::vector<std::string> cells(columns_.size());
    cells.front() = fmt::format("{}", row.step);
    for (const Row::Cell& cell : row.cells) {
      const auto column = std::ranges::find(columns_, cell.name);
      cells[static_cast<std::size_t>(column - columns_.begin())] = cell.text;
    }
    return line_of_cells(cells);
  }

  // Reads a line that has all columns.
  Row row_in(const std::string& line) const {
    const std::vector<std::string> cells = cells_of(line);
    Row row{.step = number_at_start(line).value_or(0)};
    for (std::size_t column = 1; column < columns_.size(); ++column) {
      if (!cells[column].empty()) row.cells.push_back({.name = columns_[column], .text = cells[column]});
    }
    return row;
  }

  // Adds columns for new metrics to the header and all lines.
  void add_columns(const Snapshot& snapshot) {
    std::vector<std::string> columns = columns_;
    if (columns.empty()) columns.emplace_back("step");
    for (const Metric& metric : snapshot.metrics) {
      if (std::ranges::find(columns, metric.name) == columns.end()) columns.push_back(metric.name);
    }
    if (columns.size() == columns_.size()) return;
    std::vector<std::string> lines = lines_of(path_);
    if (lines.empty()) lines.emplace_back();
    for (std::string& line : lines) {
      const std::size_t had = cells_of(line).size();
      if (had < columns.size()) line.append(columns.size() - had, ',');
    }
    lines.front() = line_of_cells(columns);
    file_.replace(lines);
    columns_ = std::move(columns);
  }

  std::filesystem::path path_;
  std::vector<std::string> columns_;  // in the order of the file
  MetricsFile file_;
  std::optional<Row> last_;  // the last row in the file
};

}  // namespace

std::unique_ptr<Sink> csv(const std::filesystem::path& path, const FileOptions& options) {
  return std::make_unique<Csv>(path, rows_up_to(options.done, path));
}

}  // namespace trireme::monitor
