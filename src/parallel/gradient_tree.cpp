#include "parallel/gradient_tree.hpp"

#include <algorithm>
#include <bit>

#include "parallel/planes.hpp"

namespace trireme::parallel {
namespace {

template <typename T>
void add(std::span<T> sum, const T* values) {
  T* sums = sum.data();
  const auto count = static_cast<std::int64_t>(sum.size());
#pragma omp parallel for simd
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
}

}  // namespace

std::shared_ptr<device::Storage>& GradientTree::plane(std::size_t level) {
  if (planes_.size() <= level) planes_.resize(level + 1);
  std::shared_ptr<device::Storage>& plane = planes_[level];
  if (plane == nullptr) {
    plane = std::make_shared<device::Storage>(device::host_memory(),
                                              static_cast<std::size_t>(store_.trainable_numel()) * size_of(store_.dtype()));
  }
  return plane;
}

void GradientTree::push() {
  for (const int index : store_.layout()) {
    if (store_.parameter(index).trainable && !store_.has_gradient(index)) store_.zero_gradient(index);
  }
  with_gradients(store_, {0, store_.trainable_numel()}, [&]<typename T>(std::span<T> gradients) {
    std::size_t level = 0;
    for (; (shards_ >> level & 1) != 0; ++level) add(gradients, static_cast<const T*>(plane(level)->data()));
    std::ranges::copy(gradients, static_cast<T*>(plane(level)->data()));
  });
  ++shards_;
  store_.clear_gradients();
}

void GradientTree::complete(const Range& range) {
  with_gradients(store_, range, [&]<typename T>(std::span<T> gradients) {
    for (std::size_t level = 0; (shards_ >> level & 1) != 0; ++level) {
      add(gradients, static_cast<const T*>(plane(level)->data()) + range.begin);
    }
  });
}

double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values.front();
  const std::size_t left = std::bit_ceil(values.size()) / 2;
  return tree_sum(values.first(left)) + tree_sum(values.subspan(left));
}

}  // namespace trireme::parallel
