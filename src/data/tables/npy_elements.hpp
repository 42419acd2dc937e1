#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/tables/npy_header.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Elements as a file has them.
struct NpyElements {
  const std::byte* first;
  bool swapped;  // bytes of an element are in the other order than here
  std::vector<std::int64_t> dims;
  bool columns_first;

  std::int64_t count() const {
    std::int64_t elements = 1;
    for (const std::int64_t dim : dims) elements *= dim;
    return elements;
  }
};

// Writes elements in row-major order as T. A number that T does not hold is an Error.
template <typename T>
using NpyConversion = void (*)(const NpyElements& elements, T* into, const Location& path);

// Of elements as the header names them; an Error where they can't be read as T.
template <typename T>
NpyConversion<T> conversion_of(const NpyHeader& header, const Location& path);

std::uint64_t element_bytes_of(const NpyHeader& header);  // that have a conversion
bool is_swapped(const NpyHeader& header);                 // bytes of an element are in the other order than here

// The array's; an Error unless so many bytes follow the header.
Shape checked_shape(const NpyHeader& header, std::uint64_t bytes, const Location& path);

}  // namespace trireme::data
