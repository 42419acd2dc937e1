#pragma once

#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gpt.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// Seconds of forward and backward of the embedding, of each block and of the output layer with its loss, for `batch` sequences
// of options.block tokens: what parallel::ModelContextOptions::layer_costs wants. Each is the least of some passes of a GPT of
// one block that is made for this, on this rank alone.
template <typename P, typename D = Cpu>
TRIREME_EXPORT std::vector<double> measured_layer_costs(const GptOptions& options, std::int64_t batch);

}  // namespace models
}  // namespace trireme
