#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "device/cuda/library.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// cuDNN's backend interface: https://docs.nvidia.com/deeplearning/cudnn/backend/latest
namespace trireme::ops {

class Cudnn {
 public:
  Cudnn();  // opens the library; throws Error{not_available} if it is missing or too old
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  // Bound to this thread's GPU and to its current stream.
  cudnnHandle_t handle();

  // Throws unless `status` is success: Error{not_available} if this version or GPU does not support the call.
  void check(cudnnStatus_t status, std::string_view call) const;

  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

 private:
  device::Library library_;
  decltype(&cudnnGetErrorString) error_string_ = nullptr;
  decltype(&cudnnGetLastErrorString) last_error_string_ = nullptr;
  decltype(&cudnnCreate) create_ = nullptr;
  decltype(&cudnnDestroy) destroy_ = nullptr;
  decltype(&cudnnSetStream) set_stream_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
};

Cudnn& cudnn();  // of this thread, opened when it is first used

template <typename T>
inline constexpr cudnnDataType_t cudnn_data_type = CUDNN_DATA_FLOAT;
template <>
inline constexpr cudnnDataType_t cudnn_data_type<double> = CUDNN_DATA_DOUBLE;
template <>
inline constexpr cudnnDataType_t cudnn_data_type<bfloat16> = CUDNN_DATA_BFLOAT16;
template <>
inline constexpr cudnnDataType_t cudnn_data_type<float16> = CUDNN_DATA_HALF;

template <typename T>
constexpr cudnnBackendAttributeType_t cudnn_attribute_type() {
  if constexpr (std::is_same_v<T, std::int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return CUDNN_TYPE_DOUBLE;
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, char>) return CUDNN_TYPE_CHAR;
  if constexpr (std::is_same_v<T, void*>) return CUDNN_TYPE_VOID_PTR;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) return CUDNN_TYPE_CONVOLUTION_MODE;
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  if constexpr (std::is_same_v<T, cudnnReduceTensorOp_t>) return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) return CUDNN_TYPE_HEUR_MODE;
}

// A descriptor of the backend: its attributes are set, then it is finalized.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& library, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : library_(other.library_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  template <typename T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  template <typename T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return set(name, cudnn_attribute_type<T>(), values.size(), values.data());
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
                       const void* values);
  CudnnDescriptor& finalize();

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  const Cudnn* library_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace trireme::ops
