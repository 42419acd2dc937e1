#pragma once

#include "ops/base/parallel.hpp"

namespace trireme::ops {

// The number of parts into which rows are split to be summed, which does not depend on the number of threads.
inline std::int64_t num_row_parts(std::int64_t rows) { return std::clamp<std::int64_t>(rows / 64, 1, 32); }

// Calls body(part, begin, end) for each part of the rows.
template <typename Body>
void parallel_row_parts(std::int64_t rows, std::int64_t width, const Body& body) {
  const std::int64_t parts = num_row_parts(rows);
  parallel_ranges(parts, 1, least_elements / std::max<std::int64_t>(rows * width / parts, 1),
                  [&](std::int64_t first, std::int64_t last) {
                    for (std::int64_t part = first; part < last; ++part) {
                      body(part, rows * part / parts, rows * (part + 1) / parts);
                    }
                  });
}

}  // namespace trireme::ops
