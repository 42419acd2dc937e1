#pragma once

#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// Consecutive layers for each stage, at least one, so that the most expensive stage costs as little as can be; of those
// divisions one with the least sum of squares. Costs are in any unit.
std::vector<Range> divide_layers(std::span<const double> costs, int num_stages);

}  // namespace nn
}  // namespace trireme
