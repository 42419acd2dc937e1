#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A number that changes with any single bit of a named tensor and does not depend on how the tensor is spread over ranks:
// the digests of its pieces, each with the global index of its first element, add up (mod 2^64) to the digest of the whole.
// T: float, double.
template <typename T>
TRIREME_EXPORT std::uint64_t digest(std::string_view name, std::span<const T> values, std::int64_t first_index = 0);

// The same of elements of any type.
std::uint64_t digest(std::string_view name, DType dtype, const void* values, std::int64_t count, std::int64_t first_index = 0);

}  // namespace trireme
