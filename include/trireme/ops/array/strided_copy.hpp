#pragma once

#include <array>
#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A box of elements and where it lies in x and in y: for each of its dims how long it is, and how far neighbours along it are
// apart in x and in y, in elements. The transpose of a matrix of 2 rows and 3 columns:
//
//   StridedCopy transposed;
//   transposed.add({.extent = 3, .from = 1, .to = 2});
//   transposed.add({.extent = 2, .from = 3, .to = 1});
//
// A distance below 0 goes backwards. Where `from` is 0, one element of x goes to all of the dim; where `to` is 0, the elements
// of x along the dim are added up.
struct StridedCopy {
  struct Dim {
    std::int64_t extent = 1;
    std::int64_t from = 0;  // between neighbours in x
    std::int64_t to = 0;    // between neighbours in y
  };
  static constexpr int max_dims = 12;  // twice those of a tensor

  std::int64_t from = 0;  // where the first element lies in x
  std::int64_t to = 0;    // where it goes in y
  int size = 0;           // number of dims
  std::array<Dim, max_dims> dims = {};

  void add(const Dim& dim);      // Error{invalid_argument} beyond max_dims
  StridedCopy reversed() const;  // from y to x
};

}  // namespace ops
}  // namespace trireme
