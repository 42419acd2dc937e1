#pragma once

#include <functional>
#include <span>

namespace trireme {

// Adds up numbers over ranks, in place: all ranks call it with equally many, in the same order of calls. Null: this rank alone.
using SumOverRanks = std::function<void(std::span<double>)>;

}  // namespace trireme
