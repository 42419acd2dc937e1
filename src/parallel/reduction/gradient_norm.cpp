#include "parallel/reduction/gradient_norm.hpp"

#include <cmath>
#include <span>

namespace trireme::parallel {

void GradientNorm::take_reduced(LaunchedBuckets& launched, const TiedSums& tied, bool wait) {
  if (!replicas_.sharded || (!wait && !replicas_.store.on_host())) return;
  for (; next_bucket_ < launched.count(); ++next_bucket_, next_range_ = 0) {
    const std::span<const Range> held = launched.held(next_bucket_);
    for (; next_range_ < held.size(); ++next_range_) {
      if (!launched.is_reduced(next_bucket_, next_range_, wait) || !tied.are_done(next_bucket_)) return;
      if (launched.counts(next_bucket_)) squares_.add(replicas_.summary, held[next_range_]);
    }
  }
}

void GradientNorm::take_before_summary(LaunchedBuckets& launched) {
  if (replicas_.sharded || replicas_.summary.whole_model()) return;
  launched.wait_for_all();
  if (replicas_.summary.first_replica()) squares_.add(replicas_.summary, all());
}

void GradientNorm::take_after_summary() {
  if (!replicas_.sharded && replicas_.summary.whole_model()) squares_.add(replicas_.summary, all());
}

double GradientNorm::value() { return std::sqrt(squares_.value()); }

}  // namespace trireme::parallel
