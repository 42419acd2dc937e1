#pragma once

#include <memory>
#include <span>
#include <vector>

#include "trireme/autograd/flat_store.hpp"

namespace trireme::parallel {

// A range of a plane on any device: for collectives, not for reading on the host.
template <typename T>
std::span<T> elements_of(const std::shared_ptr<device::Storage>& plane, const Range& range) {
  return {static_cast<T*>(plane->data()) + range.begin, static_cast<std::size_t>(range.count())};
}

// Calls action(span) with the range, in the store's element type.
template <typename Action>
auto with_elements(const FlatStore& store, const std::shared_ptr<device::Storage>& plane, const Range& range,
                   const Action& action) {
  return store.dtype() == DType::float64 ? action(elements_of<double>(plane, range)) : action(elements_of<float>(plane, range));
}
template <typename Action>
auto with_gradients(FlatStore& store, const Range& range, const Action& action) {
  return with_elements(store, store.gradient_plane(), range, action);
}
template <typename Action>
auto with_values(FlatStore& store, const Range& range, const Action& action) {
  return with_elements(store, store.value_plane(), range, action);
}

// Calls action(span) with elements that the host can read: those of the plane, or a copy from the GPU.
template <typename Action>
auto with_elements_on_host(const FlatStore& store, const std::shared_ptr<device::Storage>& plane, const Range& range,
                           const Action& action) {
  return with_elements(store, plane, range, [&]<typename T>(std::span<T> elements) {
    if (store.on_host()) return action(std::span<const T>(elements));
    std::vector<T> copy(elements.size());
    store.device().read(elements.data(), copy.data(), elements.size_bytes());
    return action(std::span<const T>(copy));
  });
}

}  // namespace trireme::parallel
