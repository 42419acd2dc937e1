#include "parallel/reduction/micro_batch_sum.hpp"

#include <bit>
#include <string>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::parallel {

void MicroBatchSum::begin_step(int micro_batches) {
  require(!fixed_bits() || micro_batches == fixed_micro_batches_,
          "a step of FixedBits has {} micro-batches on each rank here, not {}", fixed_micro_batches_, micro_batches);
  added_ = 0;
}

const std::shared_ptr<device::Storage>& MicroBatchSum::plane(std::size_t level) {
  const std::vector<int>& numbers = planes_.numbers();
  while (numbers.size() <= level) {
    planes_.add(store_, "sum of " + std::to_string(1U << numbers.size()) + " micro-batches",
                {.dtype = store_.dtype(), .extent = Extent::trainable});
  }
  return store_.plane(numbers[level]);
}

void MicroBatchSum::begin_next() {
  if (!fixed_bits()) return;
  for (const int index : store_.layout()) {
    if (store_.parameter(index).trainable && !store_.has_gradient(index)) store_.zero_gradient(index);
  }
  complete({0, store_.trainable_numel()});
  const auto& kept = plane(static_cast<std::size_t>(std::countr_one(added_)));
  store_.device().copy(kept->data(), store_.gradient_plane()->data(), kept->bytes());
  ++added_;
  store_.begin_micro_batch();
}

void MicroBatchSum::complete(const Range& range) {
  for (std::size_t level = 0; (added_ >> level & 1) != 0; ++level) {
    store_.device().add(store_.gradient_plane(), plane(level), store_.dtype(), range);
  }
}

double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values.front();
  const std::size_t left = std::bit_ceil(values.size()) / 2;
  return tree_sum(values.first(left)) + tree_sum(values.subspan(left));
}

}  // namespace trireme::parallel
