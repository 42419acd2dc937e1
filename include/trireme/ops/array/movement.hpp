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

// Every `step`-th element of a dim, from `begin` up to but not including `end`. As in Python, negative indices count from the
// end, and indices outside the dim are cut off.
struct Slice {
  static constexpr std::int64_t to_end = std::numeric_limits<std::int64_t>::max();

  std::int64_t begin = 0;
  std::int64_t end = to_end;
  std::int64_t step = 1;  // at least 1
};

enum class PadMode : std::uint8_t {
  constant,   // PadOptions::value
  reflect,    // mirrored, without repeating the element at the edge: c b | a b c | b a
  replicate,  // the element at the edge: a a | a b c | c c
};

struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of PadMode::constant
};

namespace ops {

// An operation that only moves elements, as a list of copies from x to y. The functions below plan such an operation for a
// shape of x; move_elements() runs it, and move_gradient() computes its gradient.
struct Movement {
  std::string_view name;
  Shape from;                            // of x
  Shape to;                              // of y
  std::vector<StridedCopy> copies = {};  // from x to y
  std::size_t whole = 0;                 // the first `whole` copies cover x: each element of x is in exactly one of them
  bool fills = true;                     // the copies write all of y; otherwise the remaining elements become `rest`
  double rest = 0;
  std::vector<std::pair<std::string_view, std::vector<std::int64_t>>> settings = {};  // arguments, for observers of the tape
};

Movement permuted(const Shape& x, const std::vector<int>& dims);
Movement transposed(const Shape& x, int first, int second);
Movement expanded(const Shape& x, const Shape& y);
Movement repeated(const Shape& x, const std::vector<std::int64_t>& times);
Movement rolled(const Shape& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& dims);
Movement flipped(const Shape& x, const std::vector<int>& dims);
Movement unfolded(const Shape& x, int dim, std::int64_t size, std::int64_t step);
Movement padded(const Shape& x, const std::vector<std::int64_t>& amounts, const PadOptions& options);
Movement sliced(std::string_view name, const Shape& x, const std::vector<Slice>& slices);  // slices[i] cuts dim i
Movement sliced(std::string_view name, const Shape& x, int dim, const Slice& slice);

// Moves the elements of x to y, which has the shape movement.to.
template <typename T, typename D>
TRIREME_EXPORT void move_elements(const Movement& movement, const Tensor<T, D>& x, Tensor<T, D>& y);

// Each element of dx becomes the sum of dy over the places to which this element of x was copied; with `accumulate` the sum is
// added. T: float, double, bfloat16, float16.
template <typename T, typename D>
TRIREME_EXPORT void move_gradient(const Movement& movement, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

// Copies `source` into the part of y that `part`, made by sliced(), selects. `source` must have the shape `part.to`: call
// require_part() first, which throws for any other shape.
template <typename T, typename D>
void replace_part(const Movement& part, const Tensor<T, D>& source, Tensor<T, D>& y) {
  for (const StridedCopy& box : part.copies) copy_strided(box.reversed(), source, y);
}
void require_part(const Movement& part, const Shape& source);

// Returns {first, count} of the elements that the slice selects from a dim of `extent`, as in Python.
std::pair<std::int64_t, std::int64_t> slice_of(std::string_view op, std::int64_t extent, const Slice& slice);

// The slice of `length` elements from `start` on. Throws Error{invalid_argument} if the slice reaches beyond the dim. A
// negative start counts from the end.
Slice narrowed(const Shape& x, int dim, std::int64_t start, std::int64_t length);

// The extents of the parts of a dim. split_sizes() makes parts of `size` elements; chunk_sizes() makes at most `count` parts
// of equal size. The last part may be smaller. For a dim of extent 0, split_sizes() makes one empty part, and chunk_sizes()
// `count` empty parts.
std::vector<std::int64_t> split_sizes(std::int64_t extent, std::int64_t size);
std::vector<std::int64_t> chunk_sizes(std::int64_t extent, std::int64_t count);

// Throws Error{invalid_argument} unless the sizes add up to the extent.
void require_sizes(std::int64_t extent, const std::vector<std::int64_t>& sizes);

// The index of `dim`, which may count from the end. Throws Error for other numbers: "flip: x [2, 3] has no dim 2".
int dim_of(std::string_view op, const Shape& x, int dim);

// The shapes of views.
Shape squeezed_shape(const Shape& x);           // without the dims of extent 1
Shape squeezed_shape(const Shape& x, int dim);  // without `dim`, if its extent is 1
Shape unsqueezed_shape(const Shape& x, int dim);
Shape flattened_shape(const Shape& x, int start_dim, int end_dim);

}  // namespace ops
}  // namespace trireme
