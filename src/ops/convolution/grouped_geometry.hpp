#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/convolution_shape.hpp"

// Describes which pixels are multiplied by which places of the kernel, in the same form for a convolution and for the gradient
// of its input.
namespace trireme::ops::grouped {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A place of the kernel, with the offset of the pixel that it multiplies.
struct Tap {
  std::int64_t row;
  std::int64_t column;
  std::int64_t index;  // in the kernel
};

// Results with the same taps: the result (row, column) and those in steps of `to_step` from it. Taps of one row are neighbours
// in the list.
struct Phase {
  std::int64_t row;
  std::int64_t column;
  std::vector<Tap> taps;
};

// Result (row, column) of a phase is the sum over its taps of the pixels at (row * from_step + tap.row, column * from_step +
// tap.column), times the taps' weights.
struct Geometry {
  Extent2d from;
  Extent2d to;
  Extent2d from_step;
  Extent2d to_step;
  std::vector<Phase> phases;
};

Geometry geometry_of_forward(const ConvolutionShape& shape);
// With a stride, there are several phases of pixels of x, each with its own taps.
Geometry geometry_of_data(const ConvolutionShape& shape);

// From begin to end - 1.
struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Rows of results, and the pixels that they are computed from.
struct Band {
  Range rows;
  Range from_rows;     // may reach beyond the image
  Range from_columns;  // likewise
};

Band band_of(const Geometry& geometry, const Range& rows);

// The taps whose pixels for this row of results are in the image: a range, because taps are sorted by rows.
Range taps_inside(const Geometry& geometry, const Phase& phase, std::int64_t row);

// The rows of the band for which at least one of the rows `down` below them is in the image.
Range rows_inside(const Geometry& geometry, const Band& band, const Range& down);

}  // namespace trireme::ops::grouped
