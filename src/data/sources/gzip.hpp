#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/files/location.hpp"

namespace trireme::data {

// Unpacks the bytes of a gzip file (RFC 1952); `path` is used in errors. Throws Error{corrupt_file}, and Error{not_available}
// in a build without zlib.
std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes, const Location& path);

}  // namespace trireme::data
