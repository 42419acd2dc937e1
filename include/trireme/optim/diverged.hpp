#pragma once

#include <cstdint>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// Error{diverged} for a step that is not finite, the last of `in_a_row` such steps in a row.
Error diverged(const StepSummary& summary, std::int64_t in_a_row);

}  // namespace optim
}  // namespace trireme
