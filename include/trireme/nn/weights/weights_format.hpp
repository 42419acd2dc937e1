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

// A tensor of a file that holds some rows (dim 0) of a parameter.
struct StoredRows {
  std::string name;
  std::int64_t count = 0;  // 0: all
};

// A tied weight: a tensor whose values equal those of the tensor `of`. Files hold both tensors or either of them.
struct RepeatedTensor {
  std::string name;
  std::string of;
};

// How a file's format differs from the model's parameters.
struct WeightsFormat {
  bool (*stored_transposed)(std::string_view parameter) = [](std::string_view) { return false; };
  bool (*passed_over)(std::string_view tensor) = [](std::string_view) { return false; };  // true: not a parameter, ignored
  std::string_view optional_prefix = {};                         // the file's names may lack this prefix
  std::string (*older_name)(std::string_view tensor) = nullptr;  // the name that older files use
  std::vector<RepeatedTensor> repeated = {};                     // a file that holds both tensors must have equal values
  // The tensors that hold a parameter's rows, one after the other; empty: one tensor of the parameter's name.
  std::function<std::vector<StoredRows>(const std::string& parameter)> parts = {};
  DType dtype = DType::float32;  // of files that are written: also bfloat16 or float16
  bool adapter = false;          // true: the file holds only LoRA's adapters; false: weights, with adapters merged in
};

// The tensors that hold a parameter of this shape.
inline std::vector<StoredRows> stored_rows(const std::string& parameter, const Shape& shape, const WeightsFormat& format) {
  auto parts = format.parts ? format.parts(parameter) : std::vector<StoredRows>{};
  if (parts.empty()) parts.push_back({.name = parameter});
  if (parts.front().count == 0) parts.front().count = shape.size() == 0 ? 1 : shape[0];
  return parts;
}

// `shape`, with `rows` as dim 0.
inline Shape shape_of_rows(const Shape& shape, std::int64_t rows) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (!dims.empty()) dims.front() = rows;
  return Shape(dims);
}

inline Shape stored_shape(const std::string& parameter, const Shape& shape, const WeightsFormat& format) {
  return format.stored_transposed(parameter) ? ops::transposed_shape(shape, 0, 1) : shape;
}

// Runs `action` on each rank that holds a part of the model. If `action` throws on one rank, all ranks throw that error.
void agree(const Model& model, const std::function<void()>& action, std::string_view name);

// stored_tensor() finds the file's tensor for a parameter or buffer. require_fits() checks that the tensor's type can be read
// (float32, bfloat16, float16) and that the tensor has this shape, as stored in the file. Both throw an Error otherwise.
const SafetensorsEntry& stored_tensor(const SafetensorsFile& file, const std::string& name, const WeightsFormat& format);
void require_fits(const SafetensorsFile& file, const SafetensorsEntry& entry, const Shape& shape);

// Whether the weights at `path` hold both tensors of a pair in format.repeated, with different shapes or values. False if there
// are no weights.
bool repeats_differ(const Location& path, const WeightsFormat& format);

// path: a safetensors file, or a folder as Hugging Face transformers writes it. All ranks of a divided model call these
// functions. All models of one file must lie on the same ranks and have the same element type. All ranks get the same
// LoadedWeights and errors.
LoadedWeights load_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format,
                           const LoadOptions& options = {});
void save_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format);

}  // namespace nn
}  // namespace trireme
