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

// Whether the line begins as this sink begins its lines; the rest may be missing.
bool is_json_of_step(std::string_view line) {
  if (!line.starts_with(start)) return false;
  line.remove_prefix(start.size());
  const std::size_t end = line.find_first_not_of("0123456789");
  return !line.empty() && end != 0 && (end == line.npos || line[end] == ',' || line[end] == '}');
}

// The file's lines up to this step; empty if the file is started again.
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

std::string line_of(const Row& row) {
  std::string line = fmt::format("{}{}", start, row.step);
  for (const auto& [name, text, rises] : row.cells) line += fmt::format(R"(,"{}":{})", name, text);
  return line + "}";
}

// Reads a line that line_of() wrote. A member ends at a comma outside of nested objects.
Row row_in(std::string_view line) {
  line.remove_prefix(start.size());
  line.remove_suffix(1);
  Row row{.step = number_at_start(line).value_or(0)};
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const char letter = at == line.size() ? ',' : line[at];
    depth += letter == '{' ? 1 : letter == '}' ? -1 : 0;
    if (letter != ',' || depth > 0) continue;
    const std::string_view member = line.substr(begin, at - begin);
    const std::size_t colon = member.find("\":");
    if (begin > 0 && colon != member.npos)
      row.cells.push_back({.name = std::string(member.substr(1, colon - 1)), .text = std::string(member.substr(colon + 2))});
    begin = at + 1;
  }
  return row;
}

class JsonLines final : public Sink {
 public:
  JsonLines(const std::filesystem::path& path, const std::vector<std::string>& lines) : file_(path, lines) {
    if (!lines.empty()) last_ = row_in(lines.back());
  }

  void write(const Snapshot& snapshot) override {
    Row row = row_of(snapshot, value_of);
    const bool joins = last_ && last_->step == row.step;
    if (joins) row = joined(*last_, row);
    joins ? file_.replace_last(line_of(row)) : file_.add(line_of(row));
    last_ = std::move(row);
  }

 private:
  MetricsFile file_;
  std::optional<Row> last_;  // the last row in the file
};

}  // namespace

std::unique_ptr<Sink> json_lines(const std::filesystem::path& path, const FileOptions& options) {
  return std::make_unique<JsonLines>(path, lines_up_to(options.done, path));
}

}  // namespace trireme::monitor
