#include "trireme/autograd/buffer_plane.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme {

int BufferPlane::add(std::string name, const Shape& shape, double initial) {
  require(values_ == nullptr, "buffer {} was added after the first use of the buffers' values", name);
  buffers_.push_back({.name = std::move(name), .shape = shape, .initial = initial, .offset = numel_});
  numel_ += shape.numel();
  return size() - 1;
}

int BufferPlane::find(std::string_view name) const {
  const auto found = std::ranges::find(buffers_, name, &BufferInfo::name);
  return found == buffers_.end() ? -1 : static_cast<int>(found - buffers_.begin());
}

void BufferPlane::require_plane(DType wanted) {
  require(dtype_ == wanted, "the store holds {} and was asked for buffers of {}", name_of(dtype_), name_of(wanted));
  if (values_ == nullptr) initialize();
}

void BufferPlane::keep() {
  if (values_ == nullptr) initialize();
  const auto* bytes = static_cast<const std::byte*>(values_->data());
  kept_.assign(bytes, bytes + static_cast<std::size_t>(numel_) * size_of(dtype_));
}

void BufferPlane::restore() {
  if (!kept_.empty()) std::ranges::copy(kept_, static_cast<std::byte*>(values_->data()));
}

void BufferPlane::initialize() { dtype_ == DType::float64 ? fill<double>() : fill<float>(); }

template <typename T>
void BufferPlane::fill() {
  if (values_ == nullptr) {
    values_ = std::make_shared<device::Storage>(device::host_memory(), static_cast<std::size_t>(numel_) * sizeof(T));
  }
  for (int index = 0; index < size(); ++index) {
    const Tensor<T> buffer = values<T>(index);
    std::fill_n(buffer.data(), buffer.numel(), static_cast<T>(info(index).initial));
  }
}

}  // namespace trireme
