#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {

// Which part of a parameter lies here. Ranks of a tensor axis hold different parts of one dim.
struct Placement {
  Shape shape = {};                // of the whole parameter
  int dim = -1;                    // the split dim; -1: all of the parameter lies here
  std::vector<Range> ranges = {};  // of the split dim, which lie here one after the other

  bool split() const { return dim >= 0; }

  void check(std::string_view name) const;  // throws unless the ranges lie in the dim, one after the other
  Shape local_shape() const;

  // Elements that are contiguous here and in the whole parameter.
  struct Piece {
    std::int64_t here = 0;   // first element
    std::int64_t whole = 0;  // the same element in the whole parameter
    std::int64_t count = 0;
  };
  std::vector<Piece> pieces() const;                   // ascending in both
  std::vector<Piece> pieces(const Range& here) const;  // of some of the elements that lie here
};

}  // namespace trireme
