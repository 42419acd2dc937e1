#pragma once

#include <span>

#include "trireme/autograd/flat_store.hpp"

namespace trireme::parallel {

// Calls action(span) with a range of a store's plane, in the store's element type.
template <typename Action>
auto with_gradients(FlatStore& store, const Range& range, const Action& action) {
  const auto begin = static_cast<std::size_t>(range.begin);
  const auto count = static_cast<std::size_t>(range.count());
  return store.dtype() == DType::float64 ? action(store.gradients<double>().span().subspan(begin, count))
                                         : action(store.gradients<float>().span().subspan(begin, count));
}

template <typename Action>
auto with_values(FlatStore& store, const Range& range, const Action& action) {
  const auto begin = static_cast<std::size_t>(range.begin);
  const auto count = static_cast<std::size_t>(range.count());
  return store.dtype() == DType::float64 ? action(store.values<double>().span().subspan(begin, count))
                                         : action(store.values<float>().span().subspan(begin, count));
}

}  // namespace trireme::parallel
