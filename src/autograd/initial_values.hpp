#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/initializer.hpp"

namespace trireme {

// The initial values of a whole parameter. Several threads may call operator().
class InitialValues {
 public:
  InitialValues(const Initializer& initializer, const Shape& whole, std::string_view name, std::uint64_t seed);

  double operator()(std::int64_t element) const;

 private:
  double drawn(std::uint64_t element) const;

  Initializer initializer_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  double sign_ = 1;   // truncated_normal: -1 mirrors the distribution, for bounds above the mean
  double below_ = 0;  // truncated_normal: probability below the bounds, and within them
  double within_ = 0;
  std::vector<double> matrix_ = {};  // orthogonal: all elements
};

}  // namespace trireme
