#include "trireme/autograd/placement.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme {

void Placement::check(std::string_view name) const {
  if (!split()) return;
  require(dim < shape.size(), "{}: there is no dim {} of {} to divide", name, dim, shape);
  std::int64_t last = 0;
  for (const Range& range : ranges) {
    require(range.begin >= last && range.end >= range.begin && range.end <= shape[dim],
            "{}: [{}, {}) is no part of dim {} of {} after the ones before", name, range.begin, range.end, dim, shape);
    last = range.end;
  }
}

Shape Placement::local_shape() const {
  if (!split()) return shape;
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  std::int64_t& held = dims[static_cast<std::size_t>(dim)] = 0;
  for (const Range& range : ranges) held += range.count();
  return Shape(dims);
}

std::vector<Placement::Piece> Placement::pieces() const {
  if (!split()) return {{.here = 0, .whole = 0, .count = shape.numel()}};
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int index = 0; index < dim; ++index) outer *= shape[index];
  for (int index = dim + 1; index < shape.size(); ++index) inner *= shape[index];
  std::vector<Piece> pieces;
  std::int64_t here = 0;
  for (std::int64_t place = 0; place < outer; ++place) {
    for (const Range& range : ranges) {
      const std::int64_t count = range.count() * inner;
      if (count > 0) pieces.push_back({here, (place * shape[dim] + range.begin) * inner, count});
      here += count;
    }
  }
  return pieces;
}

std::vector<Placement::Piece> Placement::pieces(const Range& here) const {
  std::vector<Piece> inside;
  for (const Piece& piece : pieces()) {
    const std::int64_t begin = std::max(piece.here, here.begin);
    const std::int64_t end = std::min(piece.here + piece.count, here.end);
    if (begin < end) inside.push_back({begin, piece.whole + begin - piece.here, end - begin});
  }
  return inside;
}

}  // namespace trireme
