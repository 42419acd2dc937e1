#pragma once

#include <cstdint>
#include <iterator>

#include "trireme/core/error.hpp"
#include "trireme/data/tables/table.hpp"

namespace trireme::data {

inline void check_standardization(const Standardization& standardization, std::int64_t num_features) {
  const auto& [mean, std] = standardization;
  require(std::ssize(mean) == num_features && std::ssize(std) == num_features,
          "a standardization of {} means and {} standard deviations does not fit {} features", mean.size(), std.size(),
          num_features);
  for (const double one : std) require(one > 0, "the standard deviation {} is not above 0", one);
}

inline float standardized(double value, std::size_t feature, const Standardization& standardization) {
  return static_cast<float>((value - standardization.mean[feature]) / standardization.std[feature]);
}

}  // namespace trireme::data
