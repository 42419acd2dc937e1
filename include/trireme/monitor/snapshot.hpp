#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace monitor {

enum class MetricKind : std::uint8_t { counter, gauge, histogram };

std::string_view name_of(MetricKind kind);

struct HistogramSummary {
  std::int64_t count = 0;
  double sum = 0;
  double minimum = 0;  // 0 if there is no value
  double maximum = 0;
  double median = 0;
  double quantile_95 = 0;
};

// A metric at the time of a snapshot.
struct Metric {
  std::string name;
  MetricKind kind = MetricKind::gauge;
  double value = 0;                 // counter: the total; gauge: the newest value; histogram: the sum
  double increase = 0;              // counter: since the last snapshot
  bool changed = false;             // since the last snapshot: added to, set, observed
  HistogramSummary histogram = {};  // for histograms
};

// The data that sinks get, once a step.
struct Snapshot {
  std::int64_t step = 0;                   // the number of finished steps, over all starts of the run
  std::optional<std::int64_t> steps = {};  // of the whole run, if that is known
  std::optional<double> epoch = {};        // passes over the data so far, if the data have an end
  double share = 0;                        // the finished share of the run, in [0, 1]
  bool last = false;                       // no step follows in this start
  std::vector<Metric> metrics = {};

  const Metric* find(std::string_view name) const;  // null if there is no metric of this name
};

}  // namespace monitor
}  // namespace trireme
