#include "ops/convolution/grouped_geometry.hpp"

#include <algorithm>
#include <limits>

namespace trireme::ops::grouped {

Geometry geometry_of_forward(const ConvolutionShape& s) {
  Phase phase{.row = 0, .column = 0, .taps = {}};
  for (std::int64_t i = 0; i < s.kernel.height; ++i) {
    for (std::int64_t j = 0; j < s.kernel.width; ++j) {
      phase.taps.push_back({.row = i * s.dilation.height - s.padding.height,
                            .column = j * s.dilation.width - s.padding.width,
                            .index = i * s.kernel.width + j});
    }
  }
  return {.from = s.x, .to = s.y, .from_step = s.stride, .to_step = 1, .phases = {phase}};
}

Geometry geometry_of_data(const ConvolutionShape& s) {
  Geometry geometry{.from = s.y, .to = s.x, .from_step = 1, .to_step = s.stride, .phases = {}};
  for (std::int64_t row = 0; row < std::min(s.stride.height, s.x.height); ++row) {
    for (std::int64_t column = 0; column < std::min(s.stride.width, s.x.width); ++column) {
      Phase phase{.row = row, .column = column, .taps = {}};
      for (std::int64_t i = s.kernel.height - 1; i >= 0; --i) {
        for (std::int64_t j = s.kernel.width - 1; j >= 0; --j) {
          const std::int64_t down = row + s.padding.height - i * s.dilation.height;
          const std::int64_t right = column + s.padding.width - j * s.dilation.width;
          if (down % s.stride.height != 0 || right % s.stride.width != 0) continue;
          phase.taps.push_back(
              {.row = down / s.stride.height, .column = right / s.stride.width, .index = i * s.kernel.width + j});
        }
      }
      geometry.phases.push_back(phase);
    }
  }
  return geometry;
}

Band band_of(const Geometry& geometry, const Range& rows) {
  Range down{.begin = std::numeric_limits<std::int64_t>::max(), .end = std::numeric_limits<std::int64_t>::min()};
  Range right = down;
  for (const Phase& phase : geometry.phases) {
    for (const Tap& tap : phase.taps) {
      down = {.begin = std::min(down.begin, tap.row), .end = std::max(down.end, tap.row + 1)};
      right = {.begin = std::min(right.begin, tap.column), .end = std::max(right.end, tap.column + 1)};
    }
  }
  if (down.begin > down.end) down = right = {.begin = 0, .end = 1};  // no tap reaches a pixel
  const std::int64_t last_row = (rows.end - 1) * geometry.from_step.height;
  const std::int64_t last_column = (ceil_div(geometry.to.width, geometry.to_step.width) - 1) * geometry.from_step.width;
  return {.rows = rows,
          .from_rows = {.begin = rows.begin * geometry.from_step.height + down.begin, .end = last_row + down.end},
          .from_columns = {.begin = right.begin, .end = last_column + right.end}};
}

Range taps_inside(const Geometry& geometry, const Phase& phase, std::int64_t row) {
  Range taps{.begin = 0, .end = static_cast<std::int64_t>(phase.taps.size())};
  const auto outside = [&](std::int64_t tap) {
    const std::int64_t from_row = row * geometry.from_step.height + phase.taps[static_cast<std::size_t>(tap)].row;
    return from_row < 0 || from_row >= geometry.from.height;
  };
  while (taps.begin < taps.end && outside(taps.begin)) ++taps.begin;
  while (taps.begin < taps.end && outside(taps.end - 1)) --taps.end;
  return taps;
}

Range rows_inside(const Geometry& geometry, const Band& band, const Range& down) {
  Range rows = band.rows;
  while (rows.begin < rows.end && rows.begin * geometry.from_step.height + down.end <= 0) ++rows.begin;
  while (rows.begin < rows.end && (rows.end - 1) * geometry.from_step.height + down.begin >= geometry.from.height) {
    --rows.end;
  }
  return rows;
}

}  // namespace trireme::ops::grouped
