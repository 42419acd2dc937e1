#include "data/tables/npy_elements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::data {
namespace {

// Calls visit(place) for the elements in row-major order, with their places in the file.
void each_place(const NpyElements& elements, const auto& visit) {
  const std::int64_t count = elements.count();
  if (!elements.columns_first) {
    for (std::int64_t place = 0; place < count; ++place) visit(place);
    return;
  }
  std::vector<std::int64_t> index(elements.dims.size()), stride(elements.dims.size());
  std::int64_t product = 1;
  for (std::size_t dim = 0; dim < index.size(); ++dim) {
    stride[dim] = product;
    product *= elements.dims[dim];
  }
  std::int64_t place = 0;
  for (std::int64_t element = 0; element < count; ++element) {
    visit(place);
    for (std::size_t dim = index.size(); dim-- > 0;) {
      place += stride[dim];
      if (++index[dim] < elements.dims[dim]) break;
      place -= stride[dim] * index[dim];
      index[dim] = 0;
    }
  }
}

template <typename From>
From element_at(const NpyElements& elements, std::int64_t place) {
  std::array<std::byte, sizeof(From)> bytes;
  std::copy_n(elements.first + place * static_cast<std::int64_t>(sizeof(From)), sizeof(From), bytes.begin());
  if (elements.swapped) std::ranges::reverse(bytes);
  return std::bit_cast<From>(bytes);
}

// Whether T holds the number, rounded where T is no whole number.
template <typename T, typename From>
bool holds(From number) {
  if constexpr (std::integral<T>) {
    return std::in_range<T>(number);
  } else {
    const auto value = static_cast<double>(number);
    return !std::isfinite(value) || std::abs(value) <= static_cast<double>(std::numeric_limits<T>::max());
  }
}

template <typename T, typename From>
void convert(const NpyElements& elements, T* into, const Location& path) {
  each_place(elements, [&](std::int64_t place) {
    using Wide = std::conditional_t<std::same_as<From, std::int8_t>, std::int32_t, From>;
    using Number = std::conditional_t<std::same_as<From, float16>, float, Wide>;
    const Number number = element_at<From>(elements, place);
    if constexpr (std::same_as<T, bool>) {
      *into++ = number != 0;
    } else {
      if (!holds<T>(number)) {
        refuse_npy(path, fmt::format("an element is {}, which {} does not hold", number, name_of(dtype_of<T>)),
                   "read it as another type");
      }
      *into++ = static_cast<T>(number);
    }
  });
}

// Of elements of this kind and size; null where there is none.
template <typename T>
NpyConversion<T> conversion_from(std::string_view element) {
  if (element == "b1") return convert<T, std::uint8_t>;
  if constexpr (!std::same_as<T, bool>) {
    if (element == "i1") return convert<T, std::int8_t>;
    if (element == "i2") return convert<T, std::int16_t>;
    if (element == "i4") return convert<T, std::int32_t>;
    if (element == "i8") return convert<T, std::int64_t>;
    if (element == "u1") return convert<T, std::uint8_t>;
    if (element == "u2") return convert<T, std::uint16_t>;
    if (element == "u4") return convert<T, std::uint32_t>;
    if (element == "u8") return convert<T, std::uint64_t>;
  }
  if constexpr (std::floating_point<T>) {
    if (element == "f2") return convert<T, float16>;
    if (element == "f4") return convert<T, float>;
    if (element == "f8") return convert<T, double>;
  }
  return nullptr;
}

}  // namespace

template <typename T>
NpyConversion<T> conversion_of(const NpyHeader& header, const Location& path) {
  const std::string_view element = header.element;
  const NpyConversion<T> conversion = element.size() == 3 ? conversion_from<T>(element.substr(1)) : nullptr;
  if (conversion == nullptr || std::string_view("<>|=").find(element[0]) == std::string_view::npos) {
    refuse_npy(path, fmt::format("the array's elements, \"{}\", can't be read as {}", element, name_of(dtype_of<T>)),
               "read it as another type, or convert it by numpy's astype()");
  }
  return conversion;
}

std::uint64_t element_bytes_of(const NpyHeader& header) { return static_cast<std::uint64_t>(header.element[2] - '0'); }

bool is_swapped(const NpyHeader& header) {
  return header.element[0] == (std::endian::native == std::endian::little ? '>' : '<');
}

Shape checked_shape(const NpyHeader& header, std::uint64_t bytes, const Location& path) {
  const std::uint64_t element_bytes = element_bytes_of(header);
  if (header.dims.size() > static_cast<std::size_t>(Shape::max_dims)) {
    refuse_npy(path, fmt::format("the array has {} dims, a tensor at most {}", header.dims.size(), Shape::max_dims),
               "reshape it before it is saved");
  }
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 60;
  const bool is_empty = std::ranges::find(header.dims, 0) != header.dims.end();
  std::uint64_t left = is_empty ? most_elements : bytes / element_bytes;  // for each index of the dims so far
  bool fits = is_empty ? bytes == 0 : bytes % element_bytes == 0;
  for (const std::int64_t dim : header.dims) {
    if (dim == 0) continue;
    fits = fits && (is_empty || left % static_cast<std::uint64_t>(dim) == 0);
    left /= static_cast<std::uint64_t>(dim);
  }
  if (!fits || left == 0 || (!is_empty && left != 1)) {
    refuse_npy(path,
               fmt::format("the array has the shape ({}) and elements of {} bytes, and {} bytes follow",
                           fmt::join(header.dims, ", "), element_bytes, bytes),
               "the file is cut, or holds more than one array: save it again");
  }
  return Shape(std::span<const std::int64_t>(header.dims));
}

#define TRIREME_INSTANTIATE(T) template NpyConversion<T> conversion_of<T>(const NpyHeader&, const Location&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(std::int32_t);
TRIREME_INSTANTIATE(std::int64_t);
TRIREME_INSTANTIATE(bool);
#undef TRIREME_INSTANTIATE

}  // namespace trireme::data
