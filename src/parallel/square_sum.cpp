#include "parallel/square_sum.hpp"

#include "parallel/summary_group.hpp"

namespace trireme::parallel {

void SquareSum::add(const SummaryGroup& ranks, const Range& range) {
  if (exact_) {
    ranks.add_squares(range, *exact_);
  } else {
    sum_ += ranks.sum_of_squares(range);
  }
}

void SquareSum::write(std::span<double> terms) {
  if (exact_) {
    exact_->write(terms.first<ExactSum::num_doubles>());
  } else {
    terms.front() = sum_;
  }
}

void SquareSum::read(std::span<const double> terms) {
  if (exact_) {
    exact_->read(terms.first<ExactSum::num_doubles>());
  } else {
    sum_ = terms.front();
  }
}

}  // namespace trireme::parallel
