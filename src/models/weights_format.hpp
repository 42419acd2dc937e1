#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trireme/models/weights.hpp"

namespace trireme::models {

// Where a file's format differs from the parameters themselves.
struct WeightsFormat {
  bool (*stored_transposed)(std::string_view parameter) = [](std::string_view) { return false; };
  bool (*passed_over)(std::string_view tensor) = [](std::string_view) { return false; };  // held beside the parameters
  std::string_view optional_prefix = {};                                                  // that the file's names may lack
};

inline Shape stored_shape(const std::string& parameter, const Shape& shape, const WeightsFormat& format) {
  return format.stored_transposed(parameter) ? Shape{shape[1], shape[0]} : shape;
}

// to[columns, rows] = from[rows, columns]^T
template <typename From, typename To>
void transpose(const From* from, std::int64_t rows, std::int64_t columns, To* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = static_cast<To>(from[row * columns + column]);
  }
}

template <typename T>
void load_weights(const std::vector<PrefixedStore>& stores, const std::string& path, const WeightsFormat& format);
template <typename T>
void save_weights(const std::vector<PrefixedStore>& stores, const std::string& path, const WeightsFormat& format);

}  // namespace trireme::models
