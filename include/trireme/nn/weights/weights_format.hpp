#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/nn/weights/weights.hpp"
#include "trireme/ops/array/transpose.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// A tensor of a file that holds some rows of a parameter, of its dim 0.
struct StoredRows {
  std::string name;
  std::int64_t count = 0;  // 0: all
};

// A tensor of files whose values are those of another one: a weight that layers share, written twice or under this name alone.
struct RepeatedTensor {
  std::string name;
  std::string of;
};

// Where a file's format differs from the parameters themselves.
struct WeightsFormat {
  bool (*stored_transposed)(std::string_view parameter) = [](std::string_view) { return false; };
  bool (*passed_over)(std::string_view tensor) = [](std::string_view) { return false; };  // held beside the parameters
  std::string_view optional_prefix = {};                                                  // that the file's names may lack
  std::string (*older_name)(std::string_view tensor) = nullptr;  // of a tensor that older files call otherwise
  std::vector<RepeatedTensor> repeated = {};                     // other values there are refused
  // The tensors that hold a parameter's rows, one after the other; nothing: one of the parameter's name.
  std::function<std::vector<StoredRows>(const std::string& parameter)> parts = {};
  DType dtype = DType::float32;  // of files that are written: also bfloat16 or float16
  bool adapter = false;          // the file holds LoRA's adapters alone, and not the weights with what these add to them
};

// The tensors that hold a parameter of this shape.
inline std::vector<StoredRows> stored_rows(const std::string& parameter, const Shape& shape, const WeightsFormat& format) {
  auto parts = format.parts ? format.parts(parameter) : std::vector<StoredRows>{};
  if (parts.empty()) parts.push_back({.name = parameter});
  if (parts.front().count == 0) parts.front().count = shape.size() == 0 ? 1 : shape[0];
  return parts;
}

// The shape with another dim 0.
inline Shape shape_of_rows(const Shape& shape, std::int64_t rows) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (!dims.empty()) dims.front() = rows;
  return Shape(dims);
}

inline Shape stored_shape(const std::string& parameter, const Shape& shape, const WeightsFormat& format) {
  return format.stored_transposed(parameter) ? ops::transposed_shape(shape, 0, 1) : shape;
}

// Runs `action` on each rank that holds a part of the model: where one throws, all throw its error.
void agree(const Model& model, const std::function<void()>& action, std::string_view name);

// The file's tensor of this parameter or buffer, and that it is of a type that is read (float32, bfloat16, float16) and of this
// shape, as the file stores it: Error otherwise.
const SafetensorsEntry& stored_tensor(const SafetensorsFile& file, const std::string& name, const WeightsFormat& format);
void require_fits(const SafetensorsFile& file, const SafetensorsEntry& entry, const Shape& shape);

// Whether what lies at `path` has both tensors of a pair with other shapes or values. Where no weights are: false.
bool repeats_differ(const Location& path, const WeightsFormat& format);

// path: a safetensors file, or a folder as transformers writes it. All ranks of a divided model call these; models of one file
// lie on the same ranks and have values of one type. The lists of what did not fit, and errors, are those of all ranks.
LoadedWeights load_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format,
                           const LoadOptions& options = {});
void save_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format);

}  // namespace nn
}  // namespace trireme
