#include "trireme/parallel/reduction/bucket_cuts.hpp"

#include <algorithm>
#include <limits>

#include "trireme/core/error.hpp"

namespace trireme::parallel {

BucketCuts cut_by_cap(std::span<const std::int64_t> gradient_bytes, std::int64_t cap, std::int64_t first_cap) {
  BucketCuts cuts;
  std::int64_t filled = 0;
  for (const std::int64_t bytes : gradient_bytes) {
    if (filled == 0) cuts.push_back(0);
    ++cuts.back();
    filled += bytes;
    if (filled >= (cuts.size() == 1 ? std::min(first_cap, cap) : cap)) filled = 0;
  }
  return cuts;
}

ReductionCost fit_cost(std::span<const CostSample> samples) {
  require(!samples.empty(), "a cost is fitted to at least one sample");
  // The normal equations of seconds = a + b bytes, weighted by 1 / seconds^2.
  double one = 0;
  double x = 0;
  double xx = 0;
  double y = 0;
  double xy = 0;
  for (const auto& [bytes, seconds] : samples) {
    const double weight = 1 / (seconds * seconds);
    one += weight;
    x += weight * bytes;
    xx += weight * bytes * bytes;
    y += weight * seconds;
    xy += weight * bytes * seconds;
  }
  const double determinant = one * xx - x * x;
  if (determinant > 1e-9 * one * xx) {
    const ReductionCost cost{.latency_seconds = (xx * y - x * xy) / determinant,
                             .seconds_per_byte = (one * xy - x * y) / determinant};
    if (cost.seconds_per_byte < 0) return {.latency_seconds = y / one, .seconds_per_byte = 0};
    if (cost.latency_seconds >= 0) return cost;
  }
  return {.latency_seconds = 0, .seconds_per_byte = xx > 0 ? xy / xx : 0};
}

double exposed_seconds(const BucketCuts& cuts, std::span<const ReadyGradient> gradients, const ReductionCost& cost) {
  struct Ready {
    double seconds = 0;
    double bytes = 0;
  };
  std::vector<Ready> buckets;
  std::size_t next = 0;
  for (const int count : cuts) {
    Ready bucket;
    for (int i = 0; i < count; ++i, ++next) {
      bucket.bytes += static_cast<double>(gradients[next].bytes);
      bucket.seconds = std::max(bucket.seconds, gradients[next].ready_seconds);
    }
    buckets.push_back(bucket);
  }
  std::ranges::stable_sort(buckets, {}, &Ready::seconds);
  double free = 0;  // the time when the link is free
  double stopped = 0;
  for (const Ready& bucket : buckets) {
    free = std::max(free, bucket.seconds) + cost.seconds(bucket.bytes);
    stopped += cost.seconds(bucket.bytes);
  }
  const double backward = buckets.empty() ? 0 : buckets.back().seconds;
  return cost.stops_compute ? stopped : free - backward;
}

BucketCuts solve_buckets(std::span<const ReadyGradient> gradients, const ReductionCost& cost) {
  const std::size_t count = gradients.size();
  if (cost.stops_compute && count > 0) return {static_cast<int>(count)};  // nothing overlaps: one bucket has the least latency
  struct Best {
    double end = std::numeric_limits<double>::max();  // when all gradients before this one are reduced
    int buckets = 0;
    std::size_t first = 0;  // the first gradient of the last bucket
  };
  std::vector<Best> best(count + 1);
  best[0].end = 0;
  double ready = 0;
  for (std::size_t end = 1; end <= count; ++end) {
    ready = std::max(ready, gradients[end - 1].ready_seconds);
    double bytes = 0;
    for (std::size_t first = end; first-- > 0;) {
      bytes += static_cast<double>(gradients[first].bytes);
      const Best candidate{
          .end = std::max(ready, best[first].end) + cost.seconds(bytes), .buckets = best[first].buckets + 1, .first = first};
      const double slack = 1e-12 * candidate.end;
      const bool equal = candidate.end <= best[end].end + slack && candidate.buckets < best[end].buckets;
      if (candidate.end < best[end].end - slack || equal) best[end] = candidate;
    }
  }
  BucketCuts cuts;
  for (std::size_t end = count; end > 0; end = best[end].first) {
    cuts.insert(cuts.begin(), static_cast<int>(end - best[end].first));
  }
  return cuts;
}

}  // namespace trireme::parallel
