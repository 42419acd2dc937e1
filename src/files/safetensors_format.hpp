#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"

// Shared by reading and writing. A file has 8 bytes with the length of the header, the header as JSON, and the bytes of the
// tensors.
namespace trireme::safetensors {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, like all supported processors");

inline constexpr std::uint64_t length_bytes = 8;
inline constexpr std::uint64_t max_header_bytes = 100'000'000;
inline constexpr std::string_view metadata_key = "__metadata__";

std::string_view format_name(DType dtype);  // "F32"
std::optional<DType> dtype_from_format_name(std::string_view name);

struct Header {
  std::vector<SafetensorsEntry> tensors;  // in the order of the header; offsets are relative to its end
  SafetensorsMetadata metadata;
};

Header parse_header(std::string_view text, const Location& path);

}  // namespace trireme::safetensors
