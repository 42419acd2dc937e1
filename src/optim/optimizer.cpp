#include "trireme/optim/optimizer.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme::optim {

template <typename P, typename D>
Optimizer<P, D>::Optimizer(FlatStore& store, double learning_rate, Decay decay)
    : store_(store),
      shard_(store.shard()),
      learning_rate_(learning_rate),
      decay_(decay),
      steps_(static_cast<std::size_t>(store.num_parameters()), 0) {}

template <typename P, typename D>
void Optimizer<P, D>::step(const StepSummary& summary, const StepOptions& options) {
  require(summary.used.size() == steps_.size(), "a step summary of {} parameters for an optimizer of {}", summary.used.size(),
          steps_.size());
  require(options.clip_norm >= 0, "clip_norm is 0 or more, got {}", options.clip_norm);
  require(store_.shard() == shard_,
          "the optimizer was made before DataParallel, which since then shards its work over the ranks; construct DataParallel "
          "first, then the optimizer");
  double scale = summary.gradient_scale;
  if (options.clip_norm > 0) scale *= std::min(1.0, options.clip_norm / (summary.gradient_norm + 1e-6));

  if (summary.kept > 0) {
    for (const int index : store_.layout()) {
      const auto parameter = static_cast<std::size_t>(index);
      if (store_.parameter(index).trainable && summary.used[parameter]) ++steps_[parameter];
    }
    if (!shard_) {
      update_range({0, store_.trainable_numel()}, 0, summary, scale);
    } else {
      const auto publication = shard_->publish();
      std::int64_t in_planes = 0;
      for (std::size_t index = 0; index < shard_->ranges().size(); ++index) {
        const Range& range = shard_->ranges()[index];
        update_range(range, in_planes, summary, scale);
        in_planes += range.count();
        publication->updated(index);
      }
      publication->finish();
    }
  }
  store_.clear_gradients();
}

// A run ends where the parameters' decay or number of updates changes; gaps hold zeros and stay zero.
template <typename P, typename D>
void Optimizer<P, D>::update_range(const Range& range, std::int64_t in_planes, const StepSummary& summary,
                                   double gradient_scale) {
  const Tensor<T, D> values = store_.values<T>();
  const Tensor<T, D> gradients = store_.gradients<T>();
  Run run{.values = nullptr,
          .gradients = nullptr,
          .offset = 0,
          .count = 0,
          .learning_rate = learning_rate_,
          .gradient_scale = gradient_scale,
          .decays = false,
          .step = 0};
  std::int64_t run_begin = 0;
  const auto flush = [&] {
    if (run.count > 0) update(run);
    run.count = 0;
  };
  const auto layout = store_.layout();
  const auto first = std::ranges::partition_point(layout, [&](int index) {
    const ParameterInfo& parameter = store_.parameter(index);
    return parameter.offset + parameter.numel <= range.begin;
  });
  for (auto place = first; place != layout.end(); ++place) {
    const ParameterInfo& parameter = store_.parameter(*place);
    const std::int64_t begin = std::max(parameter.offset, range.begin);
    const std::int64_t end = std::min(parameter.offset + parameter.numel, range.end);
    if (begin >= range.end) break;
    const auto index = static_cast<std::size_t>(*place);
    if (!parameter.trainable || !summary.used[index]) {
      flush();
      continue;
    }
    if (run.count > 0 && (run.decays != decays(parameter) || run.step != steps_[index])) flush();
    if (run.count == 0) {
      run_begin = begin;
      run.values = values.data() + begin;
      run.gradients = gradients.data() + begin;
      run.offset = in_planes + begin - range.begin;
      run.decays = decays(parameter);
      run.step = steps_[index];
    }
    run.count = static_cast<std::size_t>(end - run_begin);
  }
  flush();
}

template class Optimizer<Float32, Cpu>;
template class Optimizer<Float64, Cpu>;

}  // namespace trireme::optim
