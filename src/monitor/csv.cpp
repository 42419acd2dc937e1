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

// The header and the lines of steps before this one. Empty: the file begins anew.
std::vector<std::string> rows_before(std::int64_t step, const std::filesystem::path& path) {
  std::vector<std::string> lines = lines_of(path);
  require_metrics(lines, "step", path);
  if (lines.empty() || step == 0) return {};
  std::erase_if(lines, [&, columns = cells_of(lines.front()).size()](const std::string& line) {
    if (&line == &lines.front()) return false;
    const std::optional<std::int64_t> number = number_at_start(line);
    return !number || *number >= step || cells_of(line).size() != columns;
  });
  return lines;
}

std::string cell_of(const Metric& metric) {
  if (!metric.changed) return {};
  switch (metric.kind) {
    case MetricKind::counter: return to_text(metric.increase, "");
    case MetricKind::gauge: return fmt::format("{}", metric.value);
    case MetricKind::histogram: return to_text(metric.histogram.median, "");
  }
  return {};
}

class Csv final : public Sink {
 public:
  Csv(std::filesystem::path path, const FileOptions& options) : path_(std::move(path)) {
    const std::vector<std::string> lines = rows_before(options.first_step, path_);
    if (!lines.empty()) columns_ = cells_of(lines.front());
    file_.emplace(path_, lines);
  }

  void write(const Snapshot& snapshot) override {
    add_columns(snapshot);
    std::vector<std::string> cells(columns_.size());
    cells.front() = fmt::format("{}", snapshot.step);
    for (const Metric& metric : snapshot.metrics) {
      const auto column = std::ranges::find(columns_, metric.name);
      cells[static_cast<std::size_t>(column - columns_.begin())] = cell_of(metric);
    }
    file_->add(joined(cells));
  }

 private:
  static std::string joined(const std::vector<std::string>& cells) { return fmt::format("{}", fmt::join(cells, ",")); }

  // Those that are new, in the header and in all lines.
  void add_columns(const Snapshot& snapshot) {
    const std::size_t before = columns_.size();
    if (columns_.empty()) columns_.emplace_back("step");
    for (const Metric& metric : snapshot.metrics) {
      if (std::ranges::find(columns_, metric.name) == columns_.end()) columns_.push_back(metric.name);
    }
    if (columns_.size() == before) return;
    std::vector<std::string> lines = lines_of(path_);
    if (lines.empty()) lines.emplace_back();
    const std::string more(before == 0 ? 0 : columns_.size() - before, ',');
    for (std::string& line : lines) line += more;
    lines.front() = joined(columns_);
    file_.reset();
    file_.emplace(path_, lines);
  }

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  std::optional<MetricsFile> file_;
};

}  // namespace

std::unique_ptr<Sink> csv(const std::filesystem::path& path, const FileOptions& options) {
  return std::make_unique<Csv>(path, options);
}

}  // namespace trireme::monitor
