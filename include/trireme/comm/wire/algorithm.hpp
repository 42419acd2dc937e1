#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The all-reduce between nodes. `automatic` takes the algorithm that a measured model of the link predicts to be fastest.
enum class Algorithm : std::uint8_t { automatic, all_pairs, direct, ring, halving_doubling };

// What advances transfers between nodes while a rank computes: a thread that polls (`thread`), or only the rank's own calls of
// comm::progress() and waits (`cooperative`). Inside a node the mode is always `cooperative`.
enum class ProgressMode : std::uint8_t { thread, cooperative };

}  // namespace trireme
