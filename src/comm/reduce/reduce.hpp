#pragma once

#include <cstddef>
#include <span>

#include "trireme/core/collectives.hpp"

namespace trireme::comm {

// Reduces `count` elements of all `from`, in their order and in the tree of reduce_kernels.hpp, and writes the result to every
// `to`. A `to` may be a `from`.
void reduce(ReduceOp op, DType dtype, std::span<const std::byte* const> from, std::span<std::byte* const> to,
            std::size_t count);

// The last step of a mean.
void divide(DType dtype, std::byte* data, std::size_t count, int divisor);

}  // namespace trireme::comm
