#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/metrics_file.hpp"
#include "trireme/monitor/sink.hpp"

namespace trireme::monitor {

namespace {

constexpr std::string_view start = R"({"step":)";

std::vector<std::string> lines_before(std::int64_t step, const std::filesystem::path& path) {
  std::vector<std::string> lines = lines_of(path);
  require_metrics(lines, start, path);
  std::erase_if(lines, [step](const std::string& line) {
    if (!line.starts_with(start) || !line.ends_with('}')) return true;
    const std::optional<std::int64_t> number = number_at_start(std::string_view(line).substr(start.size()));
    return !number || *number >= step;
  });
  return lines;
}

std::string number(double value) { return to_text(value, "null"); }

std::string value_of(const Metric& metric) {
  if (metric.kind == MetricKind::gauge) return number(metric.value);
  if (metric.kind == MetricKind::counter) return number(metric.increase);
  const HistogramSummary& histogram = metric.histogram;
  return fmt::format(R"({{"count":{},"sum":{},"minimum":{},"maximum":{},"median":{},"quantile_95":{}}})", histogram.count,
                     number(histogram.sum), number(histogram.minimum), number(histogram.maximum), number(histogram.median),
                     number(histogram.quantile_95));
}

class JsonLines final : public Sink {
 public:
  JsonLines(const std::filesystem::path& path, const FileOptions& options)
      : file_(path, lines_before(options.first_step, path)) {}

  void write(const Snapshot& snapshot) override {
    std::string line = fmt::format("{}{}", start, snapshot.step);
    for (const Metric& metric : snapshot.metrics) {
      if (metric.changed) line += fmt::format(R"(,"{}":{})", metric.name, value_of(metric));
    }
    file_.add(line + "}");
  }

 private:
  MetricsFile file_;
};

}  // namespace

std::unique_ptr<Sink> json_lines(const std::filesystem::path& path, const FileOptions& options) {
  return std::make_unique<JsonLines>(path, options);
}

}  // namespace trireme::monitor
