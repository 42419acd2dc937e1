#include "backward.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Multiply-adds in registers and the first-level cache, some 10 us of them.
void multiply_add() {
  static thread_local std::array<float, 256> values{};
  for (int iteration = 0; iteration < 256; ++iteration) {
    for (float& value : values) value = value * 0.999f + 0.001f;
    asm volatile("" ::"r"(values.data()) : "memory");
  }
}

}  // namespace

Backward::Backward(std::span<const GradientSize> gradients, std::span<float> values, double seconds)
    : gradients_(gradients), values_(values) {
  double total = 0;
  for (const GradientSize& gradient : gradients) total += gradient.work;
  for (const GradientSize& gradient : gradients) seconds_.push_back(seconds * gradient.work / total);
}

void Backward::compute(std::size_t index) const {
  if (seconds_[index] == 0) return;
  const double end = thread_seconds() + seconds_[index];
  while (thread_seconds() < end) multiply_add();
}

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
