#pragma once

#include <cstddef>
#include <cstring>
#include <variant>

#include "trireme/core/error.hpp"
#include "trireme/core/state.hpp"

namespace trireme::tests {

// What a checkpoint would carry from one to the other, where both have the same layout.
inline void copy_state(const State& from, const State& to) {
  from.prepare();
  to.prepare();
  require(from.tensors().size() == to.tensors().size() && from.values().size() == to.values().size(), "two kinds of state");
  for (std::size_t i = 0; i < from.tensors().size(); ++i) {
    const StateTensor& tensor = from.tensors()[i];
    require(tensor.name == to.tensors()[i].name, "{} for {}", tensor.name, to.tensors()[i].name);
    for (std::size_t piece = 0; piece < tensor.pieces.size(); ++piece) {
      const auto bytes = static_cast<std::size_t>(tensor.pieces[piece].elements.count()) * size_of(tensor.dtype);
      std::memcpy(to.tensors()[i].pieces[piece].data, tensor.pieces[piece].data, bytes);
    }
  }
  for (std::size_t i = 0; i < from.values().size(); ++i) {
    require(from.values()[i].name == to.values()[i].name, "{} for {}", from.values()[i].name, to.values()[i].name);
    std::visit([&](auto* place) { *std::get<decltype(place)>(to.values()[i].place) = *place; }, from.values()[i].place);
  }
  to.loaded();
}

}  // namespace trireme::tests
