#include "backward.hpp"

#include <algorithm>
#include <array>

#include "measurement/measurement.hpp"

namespace {

// Multiply-adds in registers and the first-level cache.
void multiply_add(std::int64_t iterations) {
  static thread_local std::array<float, 256> values{};
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (float& value : values) value = value * 0.999f + 0.001f;
    asm volatile("" ::"r"(values.data()) : "memory");
  }
}

double seconds_per_iteration() {
  constexpr std::int64_t trial = 200'000;
  double best = 1;
  for (int round = 0; round < 5; ++round) {
    best = std::min(best, seconds_of([] { multiply_add(trial); }) / trial);
  }
  return best;
}

}  // namespace

Backward::Backward(std::span<const GradientSize> gradients, std::span<float> values, double seconds)
    : gradients_(gradients), values_(values), iterations_(gradients.size()) {
  if (seconds == 0) return;
  double total = 0;
  for (const GradientSize& gradient : gradients) total += gradient.work;
  const double iterations = seconds / seconds_per_iteration();
  for (std::size_t index = 0; index < gradients.size(); ++index) {
    iterations_[index] = static_cast<std::int64_t>(iterations * gradients[index].work / total);
  }
}

void Backward::compute(std::size_t index) const { multiply_add(iterations_[index]); }

void Backward::run(const std::function<void(std::size_t)>& on_final) const {
  std::size_t offset = 0;
  for (std::size_t index = 0; index < gradients_.size(); ++index) {
    compute(index);
    const auto elements = static_cast<std::size_t>(gradients_[index].shape.numel());
    std::ranges::fill(values_.subspan(offset, elements), 1.0f);
    offset += elements;
    on_final(index);
  }
}
