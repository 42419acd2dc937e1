#include "ops/update/step_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/update/step_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename Body>
void Steps<Cuda>::each_index(std::int64_t count, const Body& body) {
  check_cuda(cuda::each_index(count, body, native_stream()), "step");
}
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, add_to_totals, Cuda)
TRIREME_INSTANCE(Cuda, summarize_step)
TRIREME_INSTANCE(Cuda, copy_if)

void decide_step(const StepSummary& summary, double clip_norm, StepState* state) {
  const ScalarArgument<StepNumbers> numbers{.value = summary.numbers(), .element = summary.on_device.get()};
  check_cuda(cuda::decide_step({numbers, clip_norm, state}, native_stream()), "decide_step");
}

void count_updates(const StepState* state, const std::int64_t* used, std::int64_t parameters, std::int64_t* updates) {
  check_cuda(cuda::count_updates({state, used, updates}, parameters, native_stream()), "count_updates");
}

void unscale_step(const StepNumbers* scaled, LossScale* scale, StepNumbers* unscaled) {
  check_cuda(cuda::unscale_step({scaled, scale, unscaled}, native_stream()), "unscale_step");
}

void update_loss_scale(const LossScaleRules& rules, LossScale* scale) {
  check_cuda(cuda::update_loss_scale({rules, scale}, native_stream()), "update_loss_scale");
}

}  // namespace trireme::ops
