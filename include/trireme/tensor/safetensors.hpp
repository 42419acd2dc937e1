#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/core/tensor_ref.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/tensor/tensor.hpp"

// Writes tensors of the host to safetensors files, and reads them:
//
//   write_safetensors("x.safetensors", std::vector{tensor_ref("x", x), tensor_ref("y", y)});
//   const auto x = read_tensor<float>(SafetensorsFile("x.safetensors"), "x");
namespace trireme TRIREME_EXPORT {

// Reads one tensor. Throws Error with the names of file and tensor if the file has no such tensor or the tensor's dtype is not
// T.
template <typename T>
Tensor<T> read_tensor(const SafetensorsFile& file, std::string_view name) {
  const SafetensorsEntry& entry = file.at(name);
  file.check_dtype(entry, dtype_of<T>);
  const Tensor<T> tensor(entry.shape);
  file.read(name, std::as_writable_bytes(tensor.span()));
  return tensor;
}

// Reads all tensors with dtype T, by their names.
template <typename T>
std::map<std::string, Tensor<T>> read_tensors(const SafetensorsFile& file) {
  std::map<std::string, Tensor<T>> tensors;
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.dtype == dtype_of<T>) tensors.emplace(entry.name, read_tensor<T>(file, entry.name));
  }
  return tensors;
}

// Describes a tensor for write_safetensors(). The tensor must live until write_safetensors() returns.
template <typename T>
TensorRef tensor_ref(std::string name, const Tensor<T>& tensor) {
  require(tensor.defined(), "{}: a tensor that is undefined can't be stored", name);
  return {.name = std::move(name), .dtype = dtype_of<T>, .shape = tensor.shape(), .data = tensor.data()};
}

}  // namespace trireme
