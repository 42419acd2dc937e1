#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/monitor/snapshot.hpp"

// Named metrics of a rank. Any code may set them; sinks get all of them, once a step.
//
//   monitor::Registry::current().gauge("reward").set(12.5);
//   monitor::Registry::current().counter("episodes").add();
//
// A name is made of letters, digits, '_' and '.', and ends with the unit if there is one: "step_seconds", "sent_bytes".
namespace trireme TRIREME_EXPORT {
namespace monitor {

// A number that only rises: how often something happened, how many bytes were sent.
class Counter {
 public:
  void add(double amount = 1);  // 0 or more; else Error{invalid_argument}
  double value() const { return value_; }

 private:
  friend class Registry;
  double value_ = 0;
  double at_snapshot_ = 0;  // the value at the last snapshot
};

// The newest value of something: a loss, a learning rate. It may be any number, also inf or nan.
class Gauge {
 public:
  void set(double value) {
    value_ = value;
    is_set_ = true;
  }
  double value() const { return value_; }  // 0 before the first set()

 private:
  friend class Registry;
  double value_ = 0;
  bool is_set_ = false;  // since the last snapshot
};

// The distribution of values, such as times of steps or lengths of sequences. Counts values in ranges that are 9 % wide, so
// that a quantile is known within 4.5 %. Ignores nan.
class Histogram {
 public:
  void observe(double value);
  std::int64_t count() const { return summary_.count; }
  double quantile(double share) const;  // share in [0, 1]; nan before the first value

 private:
  friend class Registry;
  HistogramSummary summary_;            // without the median and quantile_95
  std::map<int, std::int64_t> counts_;  // by the number of a range
  std::int64_t count_at_snapshot_ = 0;
};

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The registry of the calling thread, and so of its rank; made at the first call.
  static Registry& current();

  // The metric of this name, made at the first call; it lives as long as the registry. Throws Error{invalid_argument} if the
  // name is not valid, or if a metric of another kind has this name.
  Counter& counter(std::string_view name);
  Gauge& gauge(std::string_view name);
  Histogram& histogram(std::string_view name);

  // All metrics in the order in which they were made, with their changes since the last take().
  std::vector<Metric> take();

  // Resets all metrics to 0. A metric stays out of snapshots until it changes again. A run calls this when it starts.
  void restart();

 private:
  struct Entry {
    std::string name;
    MetricKind kind;
    std::size_t index;    // among the metrics of its kind
    bool is_told = true;  // false from restart() until the metric changes
  };

  std::size_t find_or_add(std::string_view name, MetricKind kind, std::size_t next);

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::deque<Counter> counters_;
  std::deque<Gauge> gauges_;
  std::deque<Histogram> histograms_;
};

}  // namespace monitor
}  // namespace trireme
