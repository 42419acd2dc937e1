#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/device/memory.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme {

struct BufferInfo {
  std::string name;  // dotted, unique among buffers and parameters
  Shape shape;
  double initial = 0;       // value of every element
  std::int64_t offset = 0;  // of its first element in the plane
};

// What a model keeps beside its parameters, as the running statistics of batch norm: saved and loaded with them, but without
// gradient and optimizer state, and in no bucket. All buffers of a store lie in one plane, in registration order.
class BufferPlane {
 public:
  explicit BufferPlane(DType dtype) : dtype_(dtype) {}

  // Registers a buffer and returns its index. An error after the first use of values.
  int add(std::string name, const Shape& shape, double initial);

  int size() const { return static_cast<int>(buffers_.size()); }
  const BufferInfo& info(int index) const { return buffers_[static_cast<std::size_t>(index)]; }
  int find(std::string_view name) const;  // -1 when there is none

  // T is the store's element type: float, or double.
  template <typename T>
  Tensor<T> values() {  // the whole plane
    require_plane(dtype_of<T>);
    return Tensor<T>({numel_}, values_);
  }
  template <typename T>
  Tensor<T> values(int index) {
    require_plane(dtype_of<T>);
    return Tensor<T>(info(index).shape, values_, static_cast<std::size_t>(info(index).offset));
  }

  // restore() gives all buffers the values of the last keep(), where there was one: a step that is left out has changed them.
  void keep();
  void restore();

  void initialize();  // gives every buffer its initial value, as the first use does

 private:
  void require_plane(DType wanted);
  template <typename T>
  void fill();

  DType dtype_;
  std::vector<BufferInfo> buffers_;
  std::int64_t numel_ = 0;
  std::shared_ptr<device::Storage> values_;  // null until the first use
  std::vector<std::byte> kept_;
};

}  // namespace trireme
