#pragma once

#include <cstdint>

// Shared by writing and reading manifests.
namespace trireme::checkpoint {

inline constexpr const char* format_name = "trireme checkpoint";
inline constexpr std::int64_t version = 1;  // the version that this library writes, and the latest that it reads
inline constexpr const char* imported_field = "imported";

}  // namespace trireme::checkpoint
