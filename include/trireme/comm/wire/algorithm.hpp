#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// How ranks of different nodes all-reduce. `automatic` takes the one that a measured model of the link predicts to be fastest.
enum class Algorithm : std::uint8_t { automatic, all_pairs, direct, ring, halving_doubling };

// Who moves data between nodes while a rank computes: a thread that sleeps between its looks, or nobody until the rank calls
// comm::progress() or waits. Inside a node it is always the latter.
enum class ProgressMode : std::uint8_t { thread, cooperative };

}  // namespace trireme
