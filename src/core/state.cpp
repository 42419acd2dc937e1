#include "trireme/core/state.hpp"

#include <utility>

#include "trireme/core/error.hpp"

namespace trireme {

std::int64_t StateTensor::elements_here() const {
  std::int64_t count = 0;
  for (const StatePiece& piece : pieces) count += piece.elements.count();
  return count;
}

void State::claim(const std::string& name) {
  require(!name.empty(), "state needs a name");
  require(names_.insert(name).second, "{} is added to the state twice; give one of them a prefix", name);
}

void State::add(StateTensor tensor) {
  claim(tensor.name);
  std::int64_t last = 0;
  for (const StatePiece& piece : tensor.pieces) {
    const auto& [begin, end] = piece.elements;
    require(begin >= last && end >= begin && end <= tensor.shape.numel(),
            "{}: elements [{}, {}) of the state do not lie in {} behind the pieces before", tensor.name, begin, end,
            tensor.shape);
    require(piece.data != nullptr || begin == end, "{}: elements [{}, {}) of the state have no memory", tensor.name, begin,
            end);
    last = end;
  }
  tensors_.push_back(std::move(tensor));
}

void State::add(std::string name, Value place) {
  claim(name);
  values_.push_back({std::move(name), place});
}

void State::prepare() const {
  for (const auto& action : before_use_) action();
}

void State::loaded() const {
  for (const auto& action : after_load_) action();
}

}  // namespace trireme
