#pragma once

#include <cstddef>

#include "trireme/core/export.hpp"
#include "trireme/device/device.hpp"
#include "trireme/ops/update/step_scalars.hpp"

// The passes of the optimizers over a range of the flat store: every element is read and written once. Each pointer points to
// `count` elements. Every gradient is first multiplied by gradient_scale, for clipping and averaging. The numbers that a step's
// on_device points to are read when the pass runs.
namespace trireme TRIREME_EXPORT {
namespace ops {

struct LambStep;

// Updates every element by a formula (ops/update/formula.hpp) that ops/update/each_optimizer.hpp lists. Planes that the
// optimizer's variant does not keep are null.
template <typename Update, typename D = Cpu>
TRIREME_EXPORT void update_elements(const typename Update::Step& step, std::size_t count, const typename Update::Planes& planes,
                                    D = {});

// LAMB's first pass: updates the moments, and adds the sums of the squares of w and of u to *squares, in double.
template <typename T, typename D = Cpu>
TRIREME_EXPORT void lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                                 const LambStep& step, UpdateSquares* squares, D = {});

// LARS' first pass: adds the sums of the squares of w and of the gradient (without gradient_scale) to *squares, in double.
template <typename T, typename D = Cpu>
TRIREME_EXPORT void lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares, D = {});

}  // namespace ops
}  // namespace trireme
