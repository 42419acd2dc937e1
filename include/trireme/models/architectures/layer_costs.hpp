#pragma once

#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gpt.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// Values for parallel::ModelContextOptions::layer_costs: the seconds that the forward and backward passes take for the
// embedding, for each block, and for the output layer with its loss. The batch has `batch` sequences of options.block tokens.
// The seconds are measured on this rank with a GPT of one block; each number is the minimum of several passes.
template <typename P, typename D = Cpu>
TRIREME_EXPORT std::vector<double> measured_layer_costs(const GptOptions& options, std::int64_t batch);

}  // namespace models
}  // namespace trireme
