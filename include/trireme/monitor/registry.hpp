#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/monitor/snapshot.hpp"

// Named metrics of a rank. Whoever has something to tell sets it; sinks get all of it, once a step.
//
//   monitor::Registry::current().gauge("reward").set(12.5);
//   monitor::Registry::current().counter("episodes").add();
//
// A name is made of letters, digits, '_' and '.', and says the unit where there is one: "step_seconds", "sent_bytes".
namespace trireme TRIREME_EXPORT {
namespace monitor {

// Only rises: how often something happened, how many bytes were sent.
class Counter {
 public:
  void add(double amount = 1);  // 0 or more; else Error{invalid_argument}
  double value() const { return value_; }

 private:
  friend class Registry;
  double value_ = 0;
  double at_snapshot_ = 0;  // of before
};

// A value that comes and goes: a loss, a learning rate. Any number, inf and nan too.
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

// How values are distributed: times of steps, lengths of sequences. Keeps a count for each range of 9 %, so that a quantile is
// known within 4.5 %; nan is left out.
class Histogram {
 public:
  void observe(double value);
  std::int64_t count() const { return summary_.count; }
  double quantile(double share) const;  // share in [0, 1]; nan where nothing was observed

 private:
  friend class Registry;
  HistogramSummary summary_;            // but for its quantiles
  std::map<int, std::int64_t> counts_;  // by the number of a range
  std::int64_t count_at_snapshot_ = 0;
};

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // That of the calling thread, and so of a rank: one for each thread, made at the first call.
  static Registry& current();

  // The metric of this name, made at the first call. They live as long as the registry. A name that another kind of metric has,
  // or that is none, is an Error{invalid_argument}.
  Counter& counter(std::string_view name);
  Gauge& gauge(std::string_view name);
  Histogram& histogram(std::string_view name);

  // All metrics in the order in which they were made, and what changed since the snapshot before.
  std::vector<Metric> take();

  // All metrics begin anew: they are 0, and no snapshot has them before they are told again. A run does so.
  void restart();

 private:
  struct Entry {
    std::string name;
    MetricKind kind;
    std::size_t index;    // among those of its kind
    bool is_told = true;  // since restart()
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
