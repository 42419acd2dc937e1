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

template <typename T>
void load_weights(const std::vector<PrefixedStore>& stores, const std::string& path, const WeightsFormat& format);
template <typename T>
void save_weights(const std::vector<PrefixedStore>& stores, const std::string& path, const WeightsFormat& format);

}  // namespace trireme::models
