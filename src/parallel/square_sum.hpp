#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "parallel/exact_sum.hpp"
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

  // What the ranks add up, one by one.
  std::size_t num_terms() const { return exact_ ? ExactSum::num_doubles : 1; }
  void write(std::span<double> terms);
  void read(std::span<const double> terms);

  double value() { return exact_ ? exact_->value() : sum_; }

 private:
  double sum_ = 0;
  std::optional<ExactSum> exact_;
};

}  // namespace trireme::parallel
