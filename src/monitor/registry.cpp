#include "trireme/monitor/registry.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trireme/core/error.hpp"

namespace trireme::monitor {

namespace {

// The ranges of a histogram: eight for each doubling of the magnitude. Ranges of negative values have negative numbers.
constexpr double ranges_per_doubling = 8;
constexpr int zero_range = 0;
constexpr int first_range = 10'000;  // the range that begins at 1; those of all doubles lie within 9,000 of it

int range_of(double value) {
  if (value == 0) return zero_range;
  const double magnitude = std::min(std::abs(value), std::numeric_limits<double>::max());
  const int number = first_range + static_cast<int>(std::floor(std::log2(magnitude) * ranges_per_doubling));
  return value > 0 ? number : -number;
}

// The geometric middle of a range.
double middle_of(int range) {
  if (range == zero_range) return 0;
  const double magnitude = std::exp2((std::abs(range) - first_range + 0.5) / ranges_per_doubling);
  return range > 0 ? magnitude : -magnitude;
}

void check_name(std::string_view name) {
  const auto is_part_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  require(!name.empty() && std::ranges::all_of(name, is_part_of_name) && name != "step",
          "\"{}\" is no name for a metric: letters, digits, '_' and '.' make one, and \"step\" is taken", name);
}

}  // namespace

std::string_view name_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter: return "counter";
    case MetricKind::gauge: return "gauge";
    case MetricKind::histogram: return "histogram";
  }
  return "";
}

const Metric* Snapshot::find(std::string_view name) const {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? nullptr : &*found;
}

void Counter::add(double amount) {
  require(amount >= 0 && std::isfinite(amount), "a counter only rises: {} can't be added; a gauge takes any value", amount);
  value_ += amount;
}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;
  summary_.minimum = summary_.count == 0 ? value : std::min(summary_.minimum, value);
  summary_.maximum = summary_.count == 0 ? value : std::max(summary_.maximum, value);
  summary_.sum += value;
  ++summary_.count;
  ++counts_[range_of(value)];
}

double Histogram::quantile(double share) const {
  require(share >= 0 && share <= 1, "a quantile is asked for by a share of the values in [0, 1], not {}", share);
  if (summary_.count == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto rank = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(summary_.count)));
  std::int64_t below = 0;
  for (const auto& [range, count] : counts_) {
    below += count;
    if (below >= rank) return std::clamp(middle_of(range), summary_.minimum, summary_.maximum);
  }
  return summary_.maximum;
}

Registry& Registry::current() {
  thread_local Registry registry;
  return registry;
}

std::size_t Registry::find_or_add(std::string_view name, MetricKind kind, std::size_t next) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    check_name(name);
    by_name_.emplace(name, entries_.size());
    entries_.push_back({.name = std::string(name), .kind = kind, .index = next});
    return next;
  }
  const Entry& entry = entries_[found->second];
  require(entry.kind == kind, "the metric {} is a {}, not a {}: give one of them another name", name, name_of(entry.kind),
          name_of(kind));
  return entry.index;
}

Counter& Registry::counter(std::string_view name) {
  const std::size_t index = find_or_add(name, MetricKind::counter, counters_.size());
  return index == counters_.size() ? counters_.emplace_back() : counters_[index];
}

Gauge& Registry::gauge(std::string_view name) {
  const std::size_t index = find_or_add(name, MetricKind::gauge, gauges_.size());
  return index == gauges_.size() ? gauges_.emplace_back() : gauges_[index];
}

Histogram& Registry::histogram(std::string_view name) {
  const std::size_t index = find_or_add(name, MetricKind::histogram, histograms_.size());
  return index == histograms_.size() ? histograms_.emplace_back() : histograms_[index];
}

std::vector<Metric> Registry::take() {
  std::vector<Metric> metrics;
  metrics.reserve(entries_.size());
  for (Entry& entry : entries_) {
    Metric metric{.name = entry.name, .kind = entry.kind};
    switch (entry.kind) {
      case MetricKind::counter: {
        Counter& counter = counters_[entry.index];
        metric.value = counter.value_;
        metric.increase = counter.value_ - counter.at_snapshot_;
        metric.changed = metric.increase > 0;
        counter.at_snapshot_ = counter.value_;
        break;
      }
      case MetricKind::gauge: {
        Gauge& gauge = gauges_[entry.index];
        metric.value = gauge.value_;
        metric.changed = gauge.is_set_;
        gauge.is_set_ = false;
        break;
      }
      case MetricKind::histogram: {
        Histogram& histogram = histograms_[entry.index];
        metric.value = histogram.summary_.sum;
        metric.changed = histogram.summary_.count > histogram.count_at_snapshot_;
        metric.histogram = histogram.summary_;
        if (metric.changed) {
          metric.histogram.median = histogram.quantile(0.5);
          metric.histogram.quantile_95 = histogram.quantile(0.95);
        }
        histogram.count_at_snapshot_ = histogram.summary_.count;
        break;
      }
    }
    entry.is_told = entry.is_told || metric.changed;
    if (entry.is_told) metrics.push_back(std::move(metric));
  }
  return metrics;
}

void Registry::restart() {
  for (Entry& entry : entries_) entry.is_told = false;
  for (Counter& counter : counters_) counter = {};
  for (Gauge& gauge : gauges_) gauge = {};
  for (Histogram& histogram : histograms_) histogram = {};
}

}  // namespace trireme::monitor
