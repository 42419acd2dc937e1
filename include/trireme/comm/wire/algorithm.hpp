#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The all-reduce between nodes. `automatic` takes the algorithm that a measured model of the link predicts to be fastest.
enum class Algorithm : std::uint8_t { automatic, all_pairs, direct, ring, halving_doubling };

// How transfers between nodes advance while a rank computes: by a thread that polls (`thread`), or only in the rank's own waits
// and calls of comm::progress() (`cooperative`). Inside a node the mode is always `cooperative`.
enum class ProgressMode : std::uint8_t { thread, cooperative };

}  // namespace trireme
