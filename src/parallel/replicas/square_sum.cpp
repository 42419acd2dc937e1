#include "parallel/replicas/square_sum.hpp"

#include "parallel/replicas/summary_group.hpp"

namespace trireme::parallel {

void SquareSum::add(const SummaryGroup& ranks, const Range& range) {
  if (exact_) {
    ranks.add_squares(range, *exact_);
  } else {
    sum_ += ranks.sum_of_squares(range);
  }
}

void SquareSum::add_to(SummaryFields& fields) {
  if (exact_) {
    fields.add({.size = ExactSum::num_doubles,
                .write = [this](std::span<double> terms) { exact_->write(terms.first<ExactSum::num_doubles>()); },
                .read = [this](std::span<const double> terms) { exact_->read(terms.first<ExactSum::num_doubles>()); }});
  } else {
    fields.add({.write = [this](std::span<double> terms) { terms.front() = sum_; },
                .read = [this](std::span<const double> terms) { sum_ = terms.front(); }});
  }
}

}  // namespace trireme::parallel
