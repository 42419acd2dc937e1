#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

// Broadcasting by NumPy's rules: shapes are aligned at their last dims, and a dim that has extent 1 or is missing is repeated.
//
//   [8, 1, 384] and [256, 1] give [8, 256, 384]
namespace trireme TRIREME_EXPORT {

class Shape;

namespace ops {

// The shape of the result. If the extents of a dim differ and neither is 1, throws Error with a message that begins with the
// operation's name.
Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b);

// Finds the operands' elements for an element of the result. Neighbouring dims are merged where all operands allow it.
struct Broadcast {
  static constexpr int most_dims = 6;
  static constexpr int most_operands = 8;

  // Every operand's shape can be broadcast to `result`.
  Broadcast(const Shape& result, std::initializer_list<Shape> operands);
  Broadcast(const Shape& result, const Shape* operands, int count);

  std::int64_t numel = 0;
  int dims = 1;
  std::array<std::int64_t, most_dims> extent{};                                // the last dim is the innermost
  std::array<std::array<std::int64_t, most_dims>, most_operands> stride = {};  // of each operand; 0: repeated

  // The extent of the innermost dim. The stride of an operand in this dim is 1, or 0 if the operand is repeated.
  std::int64_t inner() const { return extent[static_cast<std::size_t>(dims - 1)]; }

  // is_whole: the operand has as many elements as the result, in the same order. is_single: the operand has one element.
  bool is_whole(int operand) const;
  bool is_single(int operand) const;
  bool are_whole_or_single(int operands) const;

  // The offset of the operand's element that belongs to element `index` of the result.
  TRIREME_HOST_DEVICE std::int64_t offset(int operand, std::int64_t index) const;
};

TRIREME_HOST_DEVICE std::int64_t Broadcast::offset(int operand, std::int64_t index) const {
  const std::int64_t* of = &stride[0][0] + operand * most_dims;
  const std::int64_t* extents = &extent[0];
  std::int64_t result = 0;
  for (int dim = dims - 1; dim > 0; --dim) {
    if (((index | extents[dim]) >> 32) == 0) {  // a GPU divides numbers of 32 bits much faster
      const auto low = static_cast<std::uint32_t>(index);
      const auto by = static_cast<std::uint32_t>(extents[dim]);
      result += static_cast<std::int64_t>(low % by) * of[dim];
      index = low / by;
    } else {
      result += index % extents[dim] * of[dim];
      index /= extents[dim];
    }
  }
  return result + index * of[0];
}

}  // namespace ops
}  // namespace trireme
