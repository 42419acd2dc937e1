#include "parallel/reduction/bucket_reduction.hpp"

#include <algorithm>

#include "parallel/step/planes.hpp"
#include "trireme/core/stopwatch.hpp"

namespace trireme::parallel {

double BucketReduction::time(std::int64_t bytes) {
  const auto element = static_cast<std::int64_t>(size_of(store_.dtype()));
  const Range range{0, std::clamp<std::int64_t>(bytes / element, 1, store_.trainable_numel())};
  group_.barrier("time of a reduction");
  const Stopwatch stopwatch;
  with_gradients(store_, range, [&](auto gradients) { store_.device().zero(gradients.data(), gradients.size_bytes()); });
  start(range, "time of a reduction").wait_on_host();
  return stopwatch.seconds();
}

}  // namespace trireme::parallel
