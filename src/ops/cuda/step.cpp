#include "ops/cuda/step.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/argument_of.hpp"
#include "trireme/ops/step.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <typename T>
void summarize_step(const StepSums<T>& sums, StepNumbers* numbers) {
  const SummarizeStep<T> body{argument_of(sums.loss), argument_of(sums.kept), sums.count, argument_of(sums.squares), numbers};
  check_cuda(cuda::summarize_step(body, native_stream()), "summarize_step");
}
template void summarize_step(const StepSums<float>&, StepNumbers*);
template void summarize_step(const StepSums<double>&, StepNumbers*);

void decide_step(const StepSummary& summary, double clip_norm, StepState* state) {
  const ScalarArgument<StepNumbers> numbers{.value = {.loss_sum = summary.loss_sum,
                                                      .kept = summary.kept,
                                                      .gradient_scale = summary.gradient_scale,
                                                      .gradient_norm = summary.gradient_norm},
                                            .element = summary.on_device.get()};
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
