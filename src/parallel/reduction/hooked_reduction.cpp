#include "parallel/reduction/hooked_reduction.hpp"

#include "parallel/reduction/hooked_buckets.hpp"

namespace trireme::parallel {

std::unique_ptr<BucketSums> HookedReduction::begin_step(std::span<const Bucket> buckets, std::int64_t number) {
  const bool compressed = compression_.begin_step(buckets, number, [this](std::int64_t bytes) { return dense_.time(bytes); });
  if (!compressed) return dense_.begin_step(buckets, number);
  return std::make_unique<HookedBuckets>(compression_, buckets, compression_.step());
}

void HookedReduction::gather() {
  if (compression_.shard() != nullptr) compression_.shard()->gather_gradients();
}

}  // namespace trireme::parallel
