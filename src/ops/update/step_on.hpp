#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/base/argument_of.hpp"
#include "ops/update/step_body.hpp"
#include "trireme/ops/update/step.hpp"

// The part of ops/update/step.hpp that both devices implement.
namespace trireme::ops {

// Calls a body for every index, on a device.
template <typename D>
struct Steps {
  template <typename Body>
  static void each_index(std::int64_t count, const Body& body);
};

template <typename T, typename D>
void add_to_totals(const StepSums<T, D>& sums, StepTotals* totals) {
  Steps<D>::each_index(
      1, AddToTotals<T>{argument_of(sums.loss), argument_of(sums.target_weight), argument_of(sums.squares), totals});
}

template <typename D>
void summarize_step(const StepTotals* totals, double count, StepNumbers* numbers) {
  Steps<D>::each_index(1, SummarizeStep{totals, count, numbers});
}

template <typename D>
void copy_if(const bool* condition, void* to, const void* from, std::size_t bytes) {
  const auto words = static_cast<std::int64_t>(bytes / sizeof(std::uint32_t));
  Steps<D>::each_index(words, CopyIf{condition, static_cast<const std::uint32_t*>(from), static_cast<std::uint32_t*>(to)});
}

}  // namespace trireme::ops
