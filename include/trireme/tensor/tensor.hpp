#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/device/device.hpp"
#include "trireme/device/memory.hpp"

namespace trireme TRIREME_EXPORT {

// A contiguous, row-major block of elements with a shape. Copies of a Tensor share the elements; clone() copies them.
// T: float, double, bfloat16, float16, float8_e4m3, float8_e5m2, std::uint16_t, std::int32_t, std::int64_t, bool. D: Cpu, or
// Cuda for this thread's GPU. Only operations can access the elements on a GPU.
template <typename T, typename D = Cpu>
class Tensor {
 public:
  using value_type = T;
  using device_type = D;
  static constexpr bool on_host = std::is_same_v<D, Cpu>;

  Tensor() = default;  // holds nothing: defined() is false

  // Not initialised. The memory comes from this thread's caching allocator.
  explicit Tensor(const Shape& shape)
      : Tensor(shape, std::make_shared<device::Storage>(device::memory_of<D>(), bytes_of(shape))) {}

  // A tensor of `shape` in a block of memory, starting at the block's element `offset`. Other tensors may share the block.
  Tensor(const Shape& shape, std::shared_ptr<device::Storage> storage, std::size_t offset = 0)
      : shape_(shape), numel_(shape.numel()), storage_(std::move(storage)) {
    const std::size_t elements = storage_->bytes() / sizeof(T);
    require(offset <= elements && static_cast<std::size_t>(numel_) <= elements - offset,
            "a tensor of shape {} at element {} does not fit a block of {} bytes", shape, offset, storage_->bytes());
    data_ = static_cast<T*>(storage_->data()) + offset;
  }

  static Tensor full(const Shape& shape, T value) {
    Tensor tensor(shape);
    if constexpr (on_host) {
      std::fill_n(tensor.data(), tensor.numel(), value);
    } else {
      static_assert(std::has_single_bit(sizeof(T)) && sizeof(T) <= 8,
                    "a GPU's memory is filled with elements of 1, 2, 4 or 8 bytes");
      device::fill(D{}, tensor.data(), &value, sizeof(T), static_cast<std::size_t>(tensor.numel()));
    }
    return tensor;
  }
  static Tensor zeros(const Shape& shape) { return full(shape, T{}); }
  static Tensor from(const Shape& shape, std::span<const T> values) {
    Tensor tensor(shape);
    require(values.size() == static_cast<std::size_t>(tensor.numel()), "{} values do not fill the shape {}", values.size(),
            shape);
    device::copy_bytes(D{}, tensor.data(), Cpu{}, values.data(), values.size_bytes());
    return tensor;
  }

  static Tensor from(const Shape& shape, std::initializer_list<T> values) {
    return from(shape, std::span<const T>(values.begin(), values.size()));
  }

  bool defined() const noexcept { return storage_ != nullptr; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t dim(int index) const { return shape_[index]; }
  std::int64_t numel() const noexcept { return numel_; }

  T* data() const noexcept { return data_; }
  std::span<T> span() const noexcept { return {data_, static_cast<std::size_t>(numel_)}; }

  // One element, to read or to write; negative indices count from the end. Each call checks the indices, so use span() or
  // data() in loops.
  //
  //   const auto x = Tensor<float>::from({2, 2}, {1, 2, 3, 4});
  //   x.at(1, 0) = 5;
  T& at(std::integral auto... index) const {
    static_assert(on_host, "at() is for tensors on the host: copy one from a GPU by x.to<Cpu>()");
    require(defined(), "at() of a tensor that is undefined");
    constexpr std::int64_t beyond = std::numeric_limits<std::int64_t>::max();  // std::size_t(0) - 1 is out of range
    const std::array<std::int64_t, sizeof...(index)> numbers{
        std::cmp_less(beyond, index) ? beyond : static_cast<std::int64_t>(index)...};
    return data_[shape_.place_of(numbers)];
  }

  T item() const {  // the only element; waits for the GPU
    require(numel_ == 1, "item() needs a tensor of one element, this one has shape {}", shape_);
    T element;
    device::copy_bytes(Cpu{}, &element, D{}, data_, sizeof(T));
    return element;
  }

  std::vector<T> to_vector() const requires(!std::is_same_v<T, bool>) {  // a copy on the host, in row-major order
    require(defined(), "to_vector() of a tensor that is undefined");
    std::vector<T> elements(static_cast<std::size_t>(numel_));
    device::copy_bytes(Cpu{}, elements.data(), D{}, data_, bytes_of(shape_));
    return elements;
  }

  // A view of the same elements with another shape. A dim of -1 is inferred from the other dims: x.reshape({-1, 4}).
  Tensor reshape(const Shape& shape) const {
    require(shape.numel() == numel_, "a tensor of shape {} cannot become {}", shape_, shape);
    Tensor result = *this;
    result.shape_ = shape;
    return result;
  }

  Tensor reshape(std::initializer_list<std::int64_t> dims) const { return reshape(shape_for(numel_, dims)); }

  // Rows [begin, begin + count) of the leading dim; the elements are shared.
  Tensor narrow(std::int64_t begin, std::int64_t count) const {
    require(begin >= 0 && count >= 0 && begin <= dim(0) && count <= dim(0) - begin,
            "{} rows from row {} on lie outside the shape {}", count, begin, shape_);
    Tensor result = *this;
    const std::int64_t row = dim(0) == 0 ? 0 : numel_ / dim(0);
    std::array<std::int64_t, Shape::max_dims> dims{};
    std::copy(shape_.dims().begin(), shape_.dims().end(), dims.begin());
    dims[0] = count;
    result.shape_ = Shape(std::span(dims.data(), shape_.dims().size()));
    result.numel_ = row * count;
    result.data_ += row * begin;
    return result;
  }

  Tensor clone() const { return to<D>(); }

  // A copy on another device or on the same device. A copy from a GPU to the host waits for the GPU.
  template <typename To>
  Tensor<T, To> to() const {
    require(defined(), "a copy of a tensor that is undefined");
    Tensor<T, To> copy(shape_);
    device::copy_bytes(To{}, copy.data(), D{}, data_, bytes_of(shape_));
    return copy;
  }

  bool shares_storage() const noexcept { return storage_.use_count() > 1; }  // whether other tensors hold the block too

  // The number of operations that wrote to the block. Call count_change() after writing through data(), span() or at() to a
  // tensor that a tape may have saved. Then backward() throws, instead of using values that the forward pass did not have.
  std::uint32_t version() const noexcept { return storage_ == nullptr ? 0 : storage_->version(); }
  void count_change() const noexcept {
    if (storage_ != nullptr) storage_->count_change();
  }

  // The block, and the offset of the first element in it; null and 0 for an undefined tensor.
  std::shared_ptr<const device::Storage> storage() const { return storage_; }
  std::int64_t offset_in_bytes() const {
    return storage_ == nullptr ? 0
                               : reinterpret_cast<const std::byte*>(data_) - static_cast<const std::byte*>(storage_->data());
  }

 private:
  static std::size_t bytes_of(const Shape& shape) {
    std::int64_t bytes = 0;
    require(!__builtin_mul_overflow(shape.numel(), std::int64_t{sizeof(T)}, &bytes),
            "a tensor of shape {} has more than 2^63 bytes", shape);
    return static_cast<std::size_t>(bytes);
  }

  Shape shape_;
  std::int64_t numel_ = 0;
  std::shared_ptr<device::Storage> storage_;
  T* data_ = nullptr;
};

}  // namespace trireme
