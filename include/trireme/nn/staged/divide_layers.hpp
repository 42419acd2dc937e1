#pragma once

#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// Divides layers into stages of consecutive layers, at least one each. Minimizes the cost of the most expensive stage, then the
// sum of the stages' squared costs. Costs may be in any unit.
std::vector<Range> divide_layers(std::span<const double> costs, int num_stages);

}  // namespace nn
}  // namespace trireme
