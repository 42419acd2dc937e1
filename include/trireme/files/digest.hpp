#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A digest of a named tensor. The digest changes if any single bit changes. It does not depend on how the tensor is divided
// between ranks: the digests of the tensor's pieces add up (mod 2^64) to the digest of the whole tensor. For a piece,
// `first_index` is the index of its first element in the whole tensor. T is float or double.
template <typename T>
TRIREME_EXPORT std::uint64_t digest(std::string_view name, std::span<const T> values, std::int64_t first_index = 0);

// The same for elements of any type.
std::uint64_t digest(std::string_view name, DType dtype, const void* values, std::int64_t count, std::int64_t first_index = 0);

}  // namespace trireme
