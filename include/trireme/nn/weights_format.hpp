#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/safetensors.hpp"
#include "trireme/nn/weights.hpp"
#include "trireme/ops/array/transpose.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// Where a file's format differs from the parameters themselves.
struct WeightsFormat {
  bool (*stored_transposed)(std::string_view parameter) = [](std::string_view) { return false; };
  bool (*passed_over)(std::string_view tensor) = [](std::string_view) { return false; };  // held beside the parameters
  std::string_view optional_prefix = {};                                                  // that the file's names may lack
};

inline Shape stored_shape(const std::string& parameter, const Shape& shape, const WeightsFormat& format) {
  return format.stored_transposed(parameter) ? ops::transposed_shape(shape, 0, 1) : shape;
}

// The file's tensor of this parameter or buffer, and that it is float32 of this shape, as the file stores it: Error otherwise.
const SafetensorsEntry& stored_tensor(const SafetensorsFile& file, const std::string& name, const WeightsFormat& format);
void require_fits(const SafetensorsFile& file, const SafetensorsEntry& entry, const Shape& shape);

template <typename T>
TRIREME_EXPORT void load_weights(const std::vector<PrefixedModel>& models, const std::string& path,
                                 const WeightsFormat& format);
template <typename T>
TRIREME_EXPORT void save_weights(const std::vector<PrefixedModel>& models, const std::string& path, const WeightsFormat& format,
                                 SafetensorsMetadata metadata = {});

}  // namespace nn
}  // namespace trireme
