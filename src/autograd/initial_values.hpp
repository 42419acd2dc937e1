#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/initializer.hpp"

namespace trireme {

// The first values of a whole parameter. operator() may be called by several threads.
class InitialValues {
 public:
  InitialValues(const Initializer& initializer, const Shape& whole, std::string_view name, std::uint64_t seed);

  double operator()(std::int64_t element) const;

 private:
  double drawn(std::uint64_t element) const;

  Initializer initializer_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  double sign_ = 1;   // of truncated_normal: the distribution is mirrored where it lies above the mean
  double below_ = 0;  // its probabilities of a value below the lower bound, and within both
  double within_ = 0;
  std::vector<double> matrix_ = {};  // orthogonal: all elements
};

}  // namespace trireme
