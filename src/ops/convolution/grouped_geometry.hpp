#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/convolution_shape.hpp"

// Which pixels a convolution multiplies by which places of its kernel, the same for it and for the gradient of its input.
namespace trireme::ops::grouped {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A place of the kernel: what it multiplies lies this far from the pixel below the first one.
struct Tap {
  std::int64_t row;
  std::int64_t column;
  std::int64_t index;  // in the kernel
};

// Results with the same taps: those `to_step` apart from the first one. Taps of the same row are neighbours.
struct Phase {
  std::int64_t row;
  std::int64_t column;
  std::vector<Tap> taps;
};

// Which pixels of one image make those of another: result (row, column) of a phase is made of the pixels at
// (row * from_step + tap.row, column * from_step + tap.column).
struct Geometry {
  Extent2d from;
  Extent2d to;
  Extent2d from_step;
  Extent2d to_step;
  std::vector<Phase> phases;
};

Geometry geometry_of_forward(const ConvolutionShape& shape);
// With a stride, the pixels of x fall into phases that different taps reach.
Geometry geometry_of_data(const ConvolutionShape& shape);

// From begin to end - 1.
struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Rows of results, and the pixels that they are made of.
struct Band {
  Range rows;
  Range from_rows;     // beyond the image as well
  Range from_columns;  // likewise
};

Band band_of(const Geometry& geometry, const Range& rows);

// The taps that lie in the image for this row of results: neighbours, as rows are.
Range taps_inside(const Geometry& geometry, const Phase& phase, std::int64_t row);

// The rows of the band for which one of the rows `down` below them exists.
Range rows_inside(const Geometry& geometry, const Band& band, const Range& down);

}  // namespace trireme::ops::grouped
