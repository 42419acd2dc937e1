#pragma once

#include <limits>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A weighted mean, accumulated from micro-batches, ranks, or batches with different numbers of samples.
//
//   Mean loss;
//   loss.add(0.7);      // one value
//   loss += {12.5, 8};  // eight values with the sum 12.5
struct Mean {
  double sum = 0;
  double weight = 0;  // the sum of the values' weights

  void add(double value, double of_weight = 1) {
    sum += value * of_weight;
    weight += of_weight;
  }
  void add(const Mean& other) { *this += other; }  // adds a partial mean
  Mean& operator+=(const Mean& other) {
    sum += other.sum;
    weight += other.weight;
    return *this;
  }
  friend bool operator==(const Mean&, const Mean&) = default;

  double value() const { return weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight; }  // nan when empty
  operator double() const { return value(); }  // NOLINT(google-explicit-constructor)
};

}  // namespace trireme
