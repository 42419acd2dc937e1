#pragma once

#include <cstdint>

// What writing and reading a manifest share.
namespace trireme::checkpoint {

inline constexpr const char* format_name = "trireme checkpoint";
inline constexpr std::int64_t version = 1;  // of what this library writes, and the latest it reads
inline constexpr const char* imported_field = "imported";

}  // namespace trireme::checkpoint
