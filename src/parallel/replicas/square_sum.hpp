#pragma once

#include <optional>

#include "parallel/replicas/exact_sum.hpp"
#include "parallel/step/summary_fields.hpp"
#include "trireme/core/range.hpp"

namespace trireme::parallel {

class SummaryGroup;

// The squares of reduced gradients added up, for their norm. Under fixed bits they are added by 8 neighbours, between which no
// part of a slice ends, and these sums exactly: the norm is the same bits whatever the slices and however many ranks add.
class SquareSum {
 public:
  explicit SquareSum(bool fixed_bits) {
    if (fixed_bits) exact_.emplace();
  }

  void add(const SummaryGroup& ranks, const Range& range);

  // The ranks add up their sums.
  void add_to(SummaryFields& fields);

  double value() { return exact_ ? exact_->value() : sum_; }

 private:
  double sum_ = 0;
  std::optional<ExactSum> exact_;
};

}  // namespace trireme::parallel
