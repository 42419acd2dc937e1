#include "trireme/optim/optimizer.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme::optim {

template <typename P, typename D>
Optimizer<P, D>::Optimizer(FlatStore& store, double learning_rate, Decay decay)
    : store_(store),
      learning_rate_(learning_rate),
      decay_(decay),
      steps_(static_cast<std::size_t>(store.num_parameters()), 0) {}

template <typename P, typename D>
void Optimizer<P, D>::step(const StepSummary& summary, const StepOptions& options) {
  require(summary.used.size() == steps_.size(), "a step summary of {} parameters for an optimizer of {}", summary.used.size(),
          steps_.size());
  require(options.clip_norm >= 0, "clip_norm is 0 or more, got {}", options.clip_norm);
  double scale = summary.gradient_scale;
  if (options.clip_norm > 0) scale *= std::min(1.0, options.clip_norm / (summary.gradient_norm + 1e-6));

  const Tensor<T, D> values = store_.values<T>();
  const Tensor<T, D> gradients = store_.gradients<T>();
  Run run{.values = nullptr,
          .gradients = nullptr,
          .offset = 0,
          .count = 0,
          .learning_rate = learning_rate_,
          .gradient_scale = scale,
          .decays = false,
          .step = 0};
  const auto flush = [&] {
    if (run.count > 0) update(run);
    run.count = 0;
  };
  for (const int index : store_.layout()) {
    const ParameterInfo& parameter = store_.parameter(index);
    if (!parameter.trainable || summary.kept == 0 || !summary.used[static_cast<std::size_t>(index)]) {
      flush();
      continue;
    }
    const std::int64_t step = ++steps_[static_cast<std::size_t>(index)];
    if (run.count > 0 && (run.decays != decays(parameter) || run.step != step)) flush();
    if (run.count == 0) {
      run.offset = parameter.offset;
      run.values = values.data() + parameter.offset;
      run.gradients = gradients.data() + parameter.offset;
      run.decays = decays(parameter);
      run.step = step;
    }
    run.count = static_cast<std::size_t>(parameter.offset + parameter.numel - run.offset);  // gaps hold zeros and stay zero
  }
  flush();
  store_.clear_gradients();
}

template class Optimizer<Float32, Cpu>;
template class Optimizer<Float64, Cpu>;

}  // namespace trireme::optim
