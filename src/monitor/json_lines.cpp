#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/metrics_file.hpp"
#include "trireme/monitor/sink.hpp"

namespace trireme::monitor {

namespace {

constexpr std::string_view start = R"({"step":)";

// As this sink begins each of its lines, which may be cut off.
bool is_json_of_step(std::string_view line) {
  if (!line.starts_with(start)) return false;
  line.remove_prefix(start.size());
  const std::size_t end = line.find_first_not_of("0123456789");
  return !line.empty() && end != 0 && (end == line.npos || line[end] == ',' || line[end] == '}');
}

// The lines up to this step. Empty: the file begins anew.
std::vector<std::string> lines_up_to(std::int64_t step, const std::filesystem::path& path) {
  require_metrics(path, is_json_of_step);
  if (step == 0) return {};
  std::vector<std::string> lines = lines_of(path);
  std::erase_if(lines, [step](const std::string& line) {
    if (!is_json_of_step(line) || !line.ends_with('}')) return true;
    const std::optional<std::int64_t> number = number_at_start(std::string_view(line).substr(start.size()));
    return !number || *number > step;
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
  JsonLines(const std::filesystem::path& path, const FileOptions& options) : file_(path, lines_up_to(options.done, path)) {}

  void write(const Snapshot& snapshot) override {
    const bool joins = last_ && last_->step == snapshot.step;
    Snapshot row = joins ? joined(*last_, snapshot) : snapshot;
    joins ? file_.replace_last(line_of(row)) : file_.add(line_of(row));
    last_ = std::move(row);
  }

 private:
  static std::string line_of(const Snapshot& snapshot) {
    std::string line = fmt::format("{}{}", start, snapshot.step);
    for (const Metric& metric : snapshot.metrics) {
      if (metric.changed) line += fmt::format(R"(,"{}":{})", metric.name, value_of(metric));
    }
    return line + "}";
  }

  MetricsFile file_;
  std::optional<Snapshot> last_;  // that was written
};

}  // namespace

std::unique_ptr<Sink> json_lines(const std::filesystem::path& path, const FileOptions& options) {
  return std::make_unique<JsonLines>(path, options);
}

}  // namespace trireme::monitor
