#pragma once

#include <optional>

#include "parallel/replicas/exact_sum.hpp"
#include "parallel/step/summary_fields.hpp"
#include "trireme/core/range.hpp"

namespace trireme::parallel {

class SummaryGroup;

// Adds the squares of reduced gradients, for their norm. Under fixed bits it adds 8 neighbours each, which always lie in one
// part of a slice, and adds these sums exactly: the norm has the same bits for any slices and number of ranks.
class SquareSum {
 public:
  explicit SquareSum(bool fixed_bits) {
    if (fixed_bits) exact_.emplace();
  }

  void add(const SummaryGroup& ranks, const Range& range);

  // Adds a field by which the ranks add up their sums.
  void add_to(SummaryFields& fields);

  double value() { return exact_ ? exact_->value() : sum_; }

 private:
  double sum_ = 0;
  std::optional<ExactSum> exact_;
};

}  // namespace trireme::parallel
