#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/array/copy_strided.hpp"

namespace trireme TRIREME_EXPORT {

// The elements from `begin` to before `end` along a dim, each `step`-th, as Python slices: numbers below 0 count from the end,
// and what lies outside is cut off.
struct Slice {
  static constexpr std::int64_t to_end = std::numeric_limits<std::int64_t>::max();

  std::int64_t begin = 0;
  std::int64_t end = to_end;
  std::int64_t step = 1;  // at least 1
};

enum class PadMode : std::uint8_t {
  constant,   // a value
  reflect,    // the elements inside, mirrored at the last one, which is not repeated: c b | a b c | b a
  replicate,  // the last element: a a | a b c | c c
};

struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of PadMode::constant
};

namespace ops {

// An operation that only moves elements: the copies that make y of x. The functions below say how such an operation is done for
// x of a shape; move_elements() does it, move_gradient() takes it back.
struct Movement {
  std::string_view name;
  Shape from;                            // of x
  Shape to;                              // of y
  std::vector<StridedCopy> copies = {};  // of x to y
  std::size_t whole = 0;                 // the first copies that between them take every element of x, and none twice
  bool fills = true;                     // the copies write all of y; otherwise the rest is
  double rest = 0;
  std::vector<std::pair<std::string_view, std::vector<std::int64_t>>> settings = {};  // for observers
};

Movement permuted(const Shape& x, const std::vector<int>& dims);
Movement transposed(const Shape& x, int first, int second);
Movement expanded(const Shape& x, const Shape& y);
Movement repeated(const Shape& x, const std::vector<std::int64_t>& times);
Movement rolled(const Shape& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& dims);
Movement flipped(const Shape& x, const std::vector<int>& dims);
Movement unfolded(const Shape& x, int dim, std::int64_t size, std::int64_t step);
Movement padded(const Shape& x, const std::vector<std::int64_t>& amounts, const PadOptions& options);
Movement sliced(std::string_view name, const Shape& x, const std::vector<Slice>& slices);  // of the first dims
Movement sliced(std::string_view name, const Shape& x, int dim, const Slice& slice);

// y, of the shape movement.to, is x moved.
template <typename T, typename D>
TRIREME_EXPORT void move_elements(const Movement& movement, const Tensor<T, D>& x, Tensor<T, D>& y);

// dx = for each element of x the sum of dy where it went, or += that. T: float, double, bfloat16, float16.
template <typename T, typename D>
TRIREME_EXPORT void move_gradient(const Movement& movement, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

// What sliced() takes of y becomes `source`, of the shape part.to; the rest of y stays. require_part() refuses another shape.
template <typename T, typename D>
void replace_part(const Movement& part, const Tensor<T, D>& source, Tensor<T, D>& y) {
  for (const StridedCopy& box : part.copies) copy_strided(box.reversed(), source, y);
}
void require_part(const Movement& part, const Shape& source);

// The elements that Python's slice takes of a dim of `extent`: {first, count}.
std::pair<std::int64_t, std::int64_t> slice_of(std::string_view op, std::int64_t extent, const Slice& slice);

// `length` elements from `start` on; Error{invalid_argument} where x lacks some. start counts from the end below 0.
Slice narrowed(const Shape& x, int dim, std::int64_t start, std::int64_t length);

// How many elements along a dim each part has: as many as `size` says, the last one the rest; `count` parts, of which the last
// may be smaller, or fewer. An undivided dim of no elements is one part, or `count`.
std::vector<std::int64_t> split_sizes(std::int64_t extent, std::int64_t size);
std::vector<std::int64_t> chunk_sizes(std::int64_t extent, std::int64_t count);

// Error{invalid_argument} unless the sizes fill the dim.
void require_sizes(std::int64_t extent, const std::vector<std::int64_t>& sizes);

// The place of a dim that may count from the end: "flip: x [2, 3] has no dim 2". Of `dims` places, for unsqueeze one more.
int dim_of(std::string_view op, const Shape& x, int dim);

// Shapes of the same elements.
Shape squeezed_shape(const Shape& x);           // without the dims of one element
Shape squeezed_shape(const Shape& x, int dim);  // without this one, if it has one element
Shape unsqueezed_shape(const Shape& x, int dim);
Shape flattened_shape(const Shape& x, int start_dim, int end_dim);

}  // namespace ops
}  // namespace trireme
