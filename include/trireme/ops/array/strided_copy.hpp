#pragma once

#include <array>
#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A box of elements, and its places in x and in y. Each dim of the box has an extent and two strides, in elements: `from` in x
// and `to` in y. Example: the transpose of a matrix of 2 rows and 3 columns.
//
//   StridedCopy transposed;
//   transposed.add({.extent = 3, .from = 1, .to = 2});
//   transposed.add({.extent = 2, .from = 3, .to = 1});
//
// A negative stride goes backwards. If `from` is 0, one element of x is repeated along the dim; if `to` is 0, the elements of x
// along the dim are summed.
struct StridedCopy {
  struct Dim {
    std::int64_t extent = 1;
    std::int64_t from = 0;  // stride in x
    std::int64_t to = 0;    // stride in y
  };
  static constexpr int max_dims = 12;  // twice the largest number of dims of a tensor

  std::int64_t from = 0;  // offset of the first element in x
  std::int64_t to = 0;    // offset of the first element in y
  int size = 0;           // number of dims
  std::array<Dim, max_dims> dims = {};

  void add(const Dim& dim);      // Error{invalid_argument} beyond max_dims
  StridedCopy reversed() const;  // from y to x
};

}  // namespace ops
}  // namespace trireme
